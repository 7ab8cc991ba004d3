"""`picokernel bench`: measurements, ours beside the peers'. A contender is a process (see duel)."""

import json


def run(args):
    """What the command line asked for. Gives an exit status."""
    from ..doctor import machine

    facts = machine()
    print("\n".join(f"{name}: {value}" for name, value in facts.items()), flush=True)
    if args.what == "elementwise":
        from .elementwise import elementwise

        figures = elementwise(args.sizes, args.backends, args.rounds, args.peers)
    else:
        from .costs import costs

        figures = costs(args.rounds, args.peers)
    if args.json:
        with open(args.json, "w", encoding="utf-8") as file:
            json.dump({"machine": facts, args.what: figures}, file, indent=1)
    return 0
