"""`bench elementwise`: NumPy arrays in and out. The first row of `works.WORKS` is the table of the
first experiment; every other one stands beside its peers."""

import statistics
import tempfile

from ..errors import LaunchError
from . import charts, users, verdicts
from .contenders import MOST_REF, Contenders
from .duel import Contender, duel, medians, ratio
from .memory import fit_sizes
from .tables import Section, Table, number, size_text
from .works import WORKS

_USERS_SIZES = WORKS["transparent"].sizes
_MOST_COLUMNS = 4  # contenders; with more of them each has a line of its own


def elementwise(names=(), sizes=None, backends=None, repeats=7, peers=False, say=print):
    """Figures: row -> size -> contender -> seconds of each round. Names are of `works.WORKS`, or
    FILE.py::kernel; "all" is every row; without any it is the first. `say` is told what is measured."""
    names = [n for name in names or ["transparent"] for n in (WORKS if name == "all" else [name])]
    for name in names:
        if not users.is_users(name) and name not in WORKS:
            raise LaunchError(
                f"nothing to measure is called {name!r}\n  there is {', '.join(WORKS)}, "
                "and FILE.py::kernel"
            )
    figures = {}
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            made = _users_contenders if users.is_users(name) else _contenders
            figures[name] = {}
            for n, contenders in made(name, sizes, backends, peers, folder, say):
                say(f"elementwise: {name}, n = {n:,}")
                rounds = repeats if n < 10**8 else min(repeats, 5)
                figures[name][str(n)] = duel(contenders, rounds)
    return figures


def _contenders(name, sizes, backends, peers, folder, say):
    work = WORKS[name]
    ours = [b for b in (work.ours if backends is None else backends) if b in live_backends()]
    for n in _sizes(sizes or work.sizes, len(ours) * 24, say):
        yield n, Contenders(work, n, folder).all(ours, peers)


def _users_contenders(word, sizes, backends, peers, folder, say):
    path, name, kernel = users.load(word)
    ours = [b for b in ("numpy", "cpu", "mlx") if b in live_backends()]
    args, kwargs = users.arguments(kernel, 16)
    each = 4 * sum(hasattr(a, "nbytes") and a.nbytes // 16 for a in (*args, *kwargs.values()))
    for n in _sizes(sizes or _USERS_SIZES, max(each, 16) * (len(ours) + 1), say):
        made = []
        for backend in [*(backends or ours), None]:
            if backend == "ref" and n > MOST_REF:
                continue
            setup = users.SETUP.format(path=path, name=name, n=n, backend=backend)
            made.append(Contender(backend or "undecorated", setup, "run()"))
        yield n, made


def _sizes(sizes, bytes_per_element, say):
    fitting, note = fit_sizes(sizes, bytes_per_element)
    if note:
        say(note)
    return fitting


def live_backends():
    import picokernel as pk

    return [name for name, why_not in pk.backends().items() if not why_not]


def sections(figures):
    """A Section for every row measured, and the bars of all."""
    found, bars = [], []
    for name, by_size in figures.items():
        times = {int(n): times for n, times in by_size.items()}
        work = WORKS.get(name)
        title = f"{work.title}, {work.dtype}" if work else name
        section = Section(f"Elementwise: {title}", _ABOUT, [_table(times)])
        if name == "transparent" or work is None:
            section.sentences = verdicts.elementwise({n: medians(t) for n, t in times.items()})
        section.chart = charts.later("by_size", times)
        found.append(section)
        bars += [line for n, t in times.items() for line in against_bars(name, n, t)]
    if bars:
        head = ["work", "n", "against", "times as fast", "must", "aim", ""]
        found.append(
            Section(
                "Elementwise: against bars",
                "The fastest peer's time by ours, round by round, the median.",
                [Table(head, bars, left=1)],
            )
        )
    return found


_ABOUT = (
    "A call with `out=`, NumPy arrays in and out: median (lowest .. highest round). Every contender is a "
    "process of its own whose result was checked; rounds go through them in turn."
)


def _table(times):
    names = list(dict.fromkeys(name for row in times.values() for name in row))
    if len(names) <= _MOST_COLUMNS:
        rows = [
            [size_text(n), *(_cell(row.get(name)) for name in names)] for n, row in times.items()
        ]
        return Table(["n", *(f"{name}, ms" for name in names)], rows)
    rows = []
    for n, row in times.items():
        middle = medians(row)
        for name in sorted(middle, key=middle.get):
            of_best = number(middle[name] / min(middle.values()))
            rows.append([size_text(n), name, _cell(row[name]), of_best])
    return Table(["n", "contender", "ms", "of the fastest"], rows, left=2)


def _cell(rounds):
    if rounds is None:
        return "-"
    low, middle, high = (f(rounds) * 1e3 for f in (min, statistics.median, max))
    return f"{number(middle)} ({number(low)} .. {number(high)})"


def against_bars(name, n, times):
    """The cells of a line per bar that was measured."""
    lines = []
    work = WORKS.get(name)
    for bar in work.bars_at(n) if work and n in work.sizes else ():
        value = ratio(times, bar.ours, bar.peers) if bar.ours in times else None
        if value is None:
            continue
        met = "aim met" if value >= bar.aim else "must met" if value >= bar.must else "missed"
        peers = " or ".join(p for p in bar.peers if p in times)
        lines.append(
            [
                f"{name}, {bar.ours}",
                f"{n:,}",
                peers,
                f"{value:.2f}",
                f"{bar.must}",
                f"{bar.aim}",
                met,
            ]
        )
    return lines
