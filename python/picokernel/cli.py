"""The command line: `picokernel demo | run | bench | profile | view | doctor | cache | trace`."""

import argparse
import os
import sys

from .errors import Error

_EXPERIMENTS = [
    "elementwise",
    "breakdown",
    "chain",
    "intensity",
    "costs",
    "auto",
    "profilers",
    "mlx",
    "threads",
    "all",
]


def _sizes(text):
    try:
        sizes = [int(float(part)) for part in text.split(",")]
    except (ValueError, OverflowError):
        raise argparse.ArgumentTypeError(f"{text!r} is no list of sizes such as 1e3,1e6") from None
    if any(n < 1 for n in sizes):
        raise argparse.ArgumentTypeError("sizes are at least 1")
    return sizes


def _positive(text):
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no number from 1 on")
    return int(text)


def _names(text):
    return [name for name in text.split(",") if name]


def _demo(args):
    from .demo import demo

    return demo(args.out)


def _bench(args):
    from . import bench

    return bench.run(args)


def _doctor(args):
    from .doctor import report

    print(report())
    return 0


def _cache_contents():
    from . import _core

    folder, problem, *contents = _core.cache_contents()
    if problem:
        raise Error(f"{folder}: {problem}")
    return folder, *contents


def _cache_info(args):
    folder, kernels, size, most = _cache_contents()
    mib = 1 << 20
    print(f"folder   {folder or 'none: HOME is not set'}")
    print(f"kernels  {kernels}")
    print(f"size     {size / mib:.1f} MiB of {most / mib:.0f}" + " (off)" * (most == 0))
    return 0


def _cache_clear(args):
    from . import _core

    _cache_contents()
    print(f"removed {_core.clear_cache()} kernels")
    return 0


def _run(args):
    from . import script
    from .simt import stand_in

    stand_in.install()
    return script.run(args.program, args.arguments, args.module)


def _profile(args):
    from . import script

    return script.profile(args.program, args.arguments, args.module, args.out, args.html)


def _view(args):
    from .view import view

    return view(args.trace, args.browser)


def _trace_merge(args):
    from .trace_files import merge

    merge(args.out, args.files)
    return 0


def _trace_compare(args):
    from .trace_files import compare

    print(compare(args.first, args.second), end="")
    return 0


def _trace_check(args):
    from . import _core

    failed = False
    for path in args.files:
        try:
            with open(path, encoding="utf-8") as file:
                text = file.read()
        except (OSError, UnicodeDecodeError) as error:
            print(f"{path}: {error}", file=sys.stderr)
            failed = True
            continue
        wrong = _core.check_trace(text)
        failed = failed or bool(wrong)
        for sentence in wrong:
            print(f"{path}: {sentence}")
        if not wrong:
            print(f"{path}: fine")
    return 1 if failed else 0


def _add_program(command):
    command.add_argument("-m", dest="module", action="store_true", help="SCRIPT is a module")
    command.add_argument("program", metavar="SCRIPT")
    command.add_argument("arguments", nargs=argparse.REMAINDER, metavar="ARGS", help="its own")


def _parser():
    parser = argparse.ArgumentParser(prog="picokernel", description="A small kernel compiler.")
    commands = parser.add_subparsers(required=True, metavar="command")

    demo = commands.add_parser("demo", help="a*b+c on every live backend: times, sources, a trace")
    demo.add_argument("--out", default="out", help="folder for the trace (default: %(default)s)")
    demo.set_defaults(run=_demo)

    bench = commands.add_parser("bench", help="the experiments: where a call's time goes")
    bench.add_argument("what", choices=_EXPERIMENTS, help="an experiment, or all of them")
    bench.add_argument(
        "works",
        nargs="*",
        metavar="WORK",
        help="FILE.py::kernel, yours; for elementwise and threads rows of their tables, or all",
    )
    bench.add_argument("--backends", type=_names, help="such as numpy,cpu (default: all live)")
    bench.add_argument("--sizes", type=_sizes, help="such as 1e3,1e6 (default: each experiment's)")
    bench.add_argument(
        "--repeats", type=_positive, help="timed rounds (default: each experiment's, 3 to 7)"
    )
    bench.add_argument("--steps", type=_sizes, help="of chain (default: 1,2,4,8,16)")
    bench.add_argument("--peers", action="store_true", help="beside numba, numexpr, jax and C")
    bench.add_argument("--json", metavar="FILE", help="write the figures to this file, too")
    bench.add_argument("--html", metavar="FILE", help="a page with all tables and charts, too")
    bench.set_defaults(run=_bench)

    run = commands.add_parser("run", help="run a script of kernels for another library, as it is")
    run.add_argument(
        "--cuda", action="store_true", required=True, help="its `numba.cuda` is picokernel.simt"
    )
    _add_program(run)
    run.set_defaults(run=_run)

    profile = commands.add_parser("profile", help="run a script and say where its time goes")
    profile.add_argument("--out", metavar="FILE", help="trace (default: SCRIPT.trace.json)")
    profile.add_argument("--html", metavar="FILE", help="a page with timeline and tables, too")
    _add_program(profile)
    profile.set_defaults(run=_profile)

    view = commands.add_parser("view", help="open a trace in Perfetto's UI, offline, until Ctrl-C")
    view.add_argument("trace", metavar="TRACE")
    view.add_argument(
        "--no-browser", dest="browser", action="store_false", help="only print the address"
    )
    view.set_defaults(run=_view)

    doctor = commands.add_parser("doctor", help="which backends run here, and the machine")
    doctor.set_defaults(run=_doctor)

    cache = commands.add_parser("cache", help="compiled kernels on disk")
    verbs = cache.add_subparsers(required=True, metavar="verb")
    info = verbs.add_parser("info", help="where they are, how many, how large")
    info.set_defaults(run=_cache_info)
    clear = verbs.add_parser("clear", help="remove them all")
    clear.set_defaults(run=_cache_clear)

    trace = commands.add_parser("trace", help="work on traces")
    verbs = trace.add_subparsers(required=True, metavar="verb")
    check = verbs.add_parser("check", help="is a trace legal, so that Perfetto loses nothing?")
    check.add_argument("files", nargs="+", metavar="FILE")
    check.set_defaults(run=_trace_check)
    merge = verbs.add_parser("merge", help="several traces in one, side by side")
    merge.add_argument("out", metavar="OUT")
    merge.add_argument("files", nargs="+", metavar="FILE")
    merge.set_defaults(run=_trace_merge)
    compare = verbs.add_parser("compare", help="each event's times in two traces")
    compare.add_argument("first", metavar="A")
    compare.add_argument("second", metavar="B")
    compare.set_defaults(run=_trace_compare)
    return parser


def main(argv=None):
    args = _parser().parse_args(argv)
    try:
        return args.run(args)
    except BrokenPipeError:  # `picokernel doctor | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (Error, OSError) as error:
        print(f"picokernel: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
