"""`bench elementwise`: each row of `works.WORKS` beside its peers, NumPy arrays in and out."""

import tempfile

from ..errors import LaunchError
from .contenders import Contenders
from .duel import duel, medians, ratio
from .works import WORKS


def elementwise(names=(), sizes=None, backends=None, rounds=7, peers=False):
    """Prints a table per row and size, then all bars. Gives the figures: row -> size -> contender ->
    seconds of each round. Without `names` it measures every row."""
    import picokernel as pk

    live = [name for name, why_not in pk.backends().items() if not why_not]
    for name in names:
        if name not in WORKS:
            raise LaunchError(
                f"nothing to measure is called {name!r}\n  there is {', '.join(WORKS)}"
            )
    for name in backends or ():
        if name not in live:
            raise LaunchError(f"backend {name} is not live here\n  live: {', '.join(live)}")
    figures, table = {}, []
    with tempfile.TemporaryDirectory() as folder:
        for name in names or WORKS:
            work, figures[name] = WORKS[name], {}
            ours = backends or [b for b in work.ours if b in live]
            for n in sizes or work.sizes:
                contenders = Contenders(work, n, folder).all(ours, peers)
                times = duel(contenders, rounds if n < 10**8 else min(rounds, 5))
                figures[name][str(n)] = times
                _print_times(f"{name}: {work.title}, {work.dtype}, n = {n:,}", times, ours)
                table += against_bars(name, n, times)
    if table:
        print(
            "\n| work | n | against | times as fast | must | aim | |\n|---|---|---|---|---|---|---|"
        )
        print(*table, sep="\n", flush=True)
    return figures


def _print_times(title, times, ours):
    print(f"\n{title}: microseconds per call, median (lowest .. highest round)")
    middle = medians(times)
    for name in sorted(middle, key=middle.get):
        low, high = min(times[name]) * 1e6, max(times[name]) * 1e6
        mark = "*" if name in ours else " "
        of_best = middle[name] / min(middle.values())
        print(
            f" {mark}{name:<16}{middle[name] * 1e6:>12.2f}  ({low:.2f} .. {high:.2f})  {of_best:.2f}x",
            flush=True,
        )


def against_bars(name, n, times):
    """A line per bar that was measured."""
    lines = []
    for bar in WORKS[name].bars_at(n) if n in WORKS[name].sizes else ():
        value = ratio(times, bar.ours, bar.peers) if bar.ours in times else None
        if value is None:
            continue
        met = "aim met" if value >= bar.aim else "must met" if value >= bar.must else "missed"
        peers = " or ".join(p for p in bar.peers if p in times)
        lines.append(
            f"| {name}, {bar.ours} | {n:,} | {peers} | {value:.2f} | {bar.must} | {bar.aim} | {met} |"
        )
    return lines
