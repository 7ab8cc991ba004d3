"""`picokernel bench`: the experiments, ours beside the peers'. A contender is a process (see duel).

An experiment gives figures, which become JSON, and makes sections of them: tables, sentences, a chart.
"""

import json
import platform
import sys
from importlib import metadata

from ..errors import LaunchError
from ..report import require_folder, write
from . import (
    auto,
    breakdown,
    chain,
    charts,
    costs,
    elementwise,
    intensity,
    on_mlx,
    page,
    profilers,
    threads,
    users,
)

EXPERIMENTS = {
    "elementwise": elementwise,
    "breakdown": breakdown,
    "chain": chain,
    "intensity": intensity,
    "costs": costs,
    "auto": auto,
    "profilers": profilers,
    "mlx": on_mlx,
    "threads": threads,
}
_ALL = ("elementwise", "breakdown", "chain", "intensity", "mlx", "threads", "costs")
_OURS = ("numpy", "cpu", "mlx")  # by default, of those that are live


def run(args):
    """What the command line asked for: prints Markdown, writes JSON and a page. Gives an exit status."""
    chosen = list(_ALL) if args.what == "all" else [args.what]
    measures = _measures(args, chosen)
    for path in filter(None, (args.json, args.html)):
        require_folder(path)
    if args.html:
        charts.require_plotly()
    from ..doctor import machine

    facts = machine() | {"versions": _versions()}
    print("\n".join(f"- {name}: {value}" for name, value in facts.items()), end="\n\n", flush=True)
    figures, sections = {"machine": facts}, []
    for name in chosen:
        figures[name] = measures[name]()
        made = EXPERIMENTS[name].sections(figures[name])
        print("\n".join(section.text() for section in made), flush=True)
        sections += made
    if args.json:
        write(args.json, json.dumps(figures, indent=1) + "\n")
    if args.html:
        write(args.html, page.page(facts, sections))
    return 0


def _measures(args, chosen):
    """Experiment -> what measures it. Raises LaunchError if `args` ask for what there is not."""
    live = elementwise.live_backends()
    for name in args.backends or ():
        if name not in live:
            raise LaunchError(f"backend {name} is not live here\n  live: {', '.join(live)}")
    backends = args.backends or [name for name in _OURS if name in live]
    own = [word for word in args.works if users.is_users(word)]
    for word in own:
        users.check_callable(users.load(word)[2], word)
    if args.works and not {"elementwise", "breakdown", "threads"} & set(chosen):
        raise LaunchError(f"bench {args.what} has no rows to choose from")
    if len(own) > 1 or (
        len(own) < len(args.works) and not {"elementwise", "threads"} & set(chosen)
    ):
        raise LaunchError(f"bench {args.what} takes one kernel, as FILE.py::kernel")

    def repeats(default):
        return args.repeats or default

    return {
        "elementwise": lambda: elementwise.elementwise(
            args.works, args.sizes, args.backends, repeats(7), args.peers, _say
        ),
        "breakdown": lambda: breakdown.breakdown(
            own[0] if own else None, args.sizes, backends, repeats(5), _say
        ),
        "chain": lambda: chain.chain(
            args.sizes, args.steps, backends, repeats(3), args.peers, _say
        ),
        "intensity": lambda: intensity.intensity(args.sizes, backends, repeats(3), _say),
        "costs": lambda: costs.costs(repeats(7), args.peers, _say),
        "auto": lambda: auto.auto(args.sizes, backends, _say),
        "profilers": lambda: profilers.profilers(args.sizes, backends, repeats(7), _say),
        "threads": lambda: threads.threads(
            args.works if args.what == "threads" else (), repeats(5), args.peers, _say
        ),
        "mlx": lambda: on_mlx.on_mlx(args.sizes, repeats(9), _say),
    }


def _say(text):
    """What happens meanwhile; stdout is the report."""
    print(text, file=sys.stderr, flush=True)


def _versions():
    found = [f"Python {platform.python_version()}"]
    for package in ("numba", "numexpr", "jax", "mlx"):
        try:
            found.append(f"{package} {metadata.version(package)}")
        except metadata.PackageNotFoundError:
            continue
    return ", ".join(found)
