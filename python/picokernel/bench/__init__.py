"""`picokernel bench`: measurements, ours beside the peers'. A contender is a process (see duel)."""

import json
import platform
from importlib import metadata

from ..errors import LaunchError


def run(args):
    """What the command line asked for. Gives an exit status."""
    from ..doctor import machine

    facts = machine() | {"versions": _versions()}
    print("\n".join(f"{name}: {value}" for name, value in facts.items()), flush=True)
    if args.what == "elementwise":
        from .elementwise import elementwise

        figures = elementwise(args.works, args.sizes, args.backends, args.rounds, args.peers)
    else:
        from .costs import costs

        if args.works:
            raise LaunchError("bench costs has no rows to choose from")
        figures = costs(args.rounds, args.peers)
    if args.json:
        with open(args.json, "w", encoding="utf-8") as file:
            json.dump({"machine": facts, args.what: figures}, file, indent=1)
    return 0


def _versions():
    found = [f"Python {platform.python_version()}"]
    for package in ("numba", "numexpr", "jax", "mlx"):
        try:
            found.append(f"{package} {metadata.version(package)}")
        except metadata.PackageNotFoundError:
            continue
    return ", ".join(found)
