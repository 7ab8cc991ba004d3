"""The command line: `picokernel demo | bench | doctor | trace check`."""

import argparse
import os
import sys

from .errors import Error


def _sizes(text):
    try:
        sizes = [int(float(part)) for part in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no list of sizes such as 1e3,1e6") from None
    if any(n < 1 for n in sizes):
        raise argparse.ArgumentTypeError("sizes are at least 1")
    return sizes


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


def _parser():
    parser = argparse.ArgumentParser(prog="picokernel", description="A small kernel compiler.")
    commands = parser.add_subparsers(required=True, metavar="command")

    demo = commands.add_parser("demo", help="a*b+c on every live backend: times, sources, a trace")
    demo.add_argument("--out", default="out", help="folder for the trace (default: %(default)s)")
    demo.set_defaults(run=_demo)

    bench = commands.add_parser("bench", help="measure")
    bench.add_argument("what", choices=["elementwise", "costs"], help="what to measure")
    bench.add_argument("works", nargs="*", metavar="WORK", help="rows of it (default: all)")
    bench.add_argument("--backends", type=_names, help="such as numpy,cpu (default: all live)")
    bench.add_argument("--sizes", type=_sizes, help="such as 1e3,1e6 (default: each row's)")
    bench.add_argument("--rounds", type=int, default=7, help="timed rounds (default: %(default)s)")
    bench.add_argument("--peers", action="store_true", help="beside numba, numexpr, jax and C")
    bench.add_argument("--json", help="write the figures to this file too")
    bench.set_defaults(run=_bench)

    doctor = commands.add_parser("doctor", help="which backends run here, and the machine")
    doctor.set_defaults(run=_doctor)

    trace = commands.add_parser("trace", help="work on traces")
    verbs = trace.add_subparsers(required=True, metavar="verb")
    check = verbs.add_parser("check", help="is a trace legal, so that Perfetto loses nothing?")
    check.add_argument("files", nargs="+", metavar="FILE")
    check.set_defaults(run=_trace_check)
    return parser


def main(argv=None):
    args = _parser().parse_args(argv)
    try:
        return args.run(args)
    except Error as error:
        print(f"picokernel: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:  # `picokernel doctor | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


if __name__ == "__main__":
    sys.exit(main())
