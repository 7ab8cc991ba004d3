"""Time per line of the user's kernels: `Profiler.lines`."""

import linecache
import os

from .kernel import PLACES
from .report import columns, duration


class _Sum:
    """Times of a line or of one printed operation."""

    def __init__(self):
        self.count = self.total = 0
        self.parts = {}  # of a line: (category, text) -> _Sum

    def add(self, ns, count=1):
        self.count += count
        self.total += ns

    def cells(self, whole):
        mean, share = self.total / self.count, 100 * self.total / whole if whole else 0
        return [str(self.count), duration(self.total), duration(mean), f"{share:.1f} %"]


def _calls(events):
    """(call, what ran directly in it), of spans in nesting order."""
    call, parts, covered_until, call_end = None, [], 0, 0
    for e in events:
        if e.phase != "X":
            continue
        begin, end = e.begin_ns, e.begin_ns + e.duration_ns
        if call is not None and (call.pid, call.tid) == (e.pid, e.tid) and end <= call_end:
            if begin >= covered_until:
                parts.append(e)
                covered_until = end
        elif e.category == "call":
            if call is not None:
                yield call, parts
            call, parts, covered_until, call_end = e, [], begin, end
    if call is not None:
        yield call, parts


def _split(location):
    """File and line of `file:line:column`; None where there is none."""
    file, line, _ = location.rsplit(":", 2) if location else (None, 0, 0)
    return file and (file, int(line))


def _definition(name, places):
    """Where the kernel that ran at these places is defined: the nearest one above them. Events have
    its name only, so that of several it is the newest if no place tells."""
    known = list(PLACES.get(name, ()))
    for place in places if len(known) > 1 else ():
        above = [d for d in known if d[0] == place[0] and d[1] <= place[1]]
        if above:
            return max(above), 1
    return (known[-1], len(known)) if known else (("?", 0), 1)


def _text(file, line):
    return linecache.getline(file, line).strip()


def _def_line(file, line):
    """The line of `def`, below decorators."""
    for n in range(line, line + 30):
        if _text(file, n).startswith(("def ", "async def ")):
            return n
        if not _text(file, n):
            break
    return line


def _collect(events):
    kernels = {}  # (pid, process, kernel, definition, candidates) -> calls, {place: _Sum}
    for call, parts in _calls(events):
        details = [(e, e.args) for e in parts]
        places = [_split(args.get("location")) for _, args in details]
        definition, candidates = _definition(call.name, [p for p in places if p])
        home = (definition[0], _def_line(*definition))
        key = (call.pid, call.process, call.name, home, candidates)
        calls, lines = kernels.setdefault(key, (_Sum(), {}))
        calls.add(call.duration_ns)
        rest = sum(e.duration_ns for e in parts if e.category == "rest")
        work = {home: [(("rest", "of the call"), rest)]}
        for (e, args), place in zip(details, places, strict=True):
            if e.category == "rest":
                continue
            text = e.name
            if "source" in args:
                text = f"{args['line']}: {args['source']}"
                text += f"  # {args['ir_op']}" if "ir_op" in args else ""
            work.setdefault(place or home, []).append(((e.category, text), e.duration_ns))
        for place, done in work.items():
            line = lines.setdefault(place, _Sum())
            line.add(sum(ns for _, ns in done))
            for part, ns in done:
                line.parts.setdefault(part, _Sum()).add(ns)
    return kernels


def lines(events):
    """The text of `Profiler.lines`."""
    pieces = []
    for (_, process, name, home, candidates), (calls, rows) in _collect(events).items():
        times = f"{calls.count} call{'s' * (calls.count > 1)}, {duration(calls.total)}"
        note = f" (the newest of {candidates} kernels of this name)" if candidates > 1 else ""
        pieces.append(f"{name} on {process}: {times}, {home[0]}{note}\n")
        table = [["line", "count", "total", "mean", "share", "source and what ran for it"]]
        for file, line in sorted(rows, key=lambda place: (place[0] != home[0], place)):
            row = rows[file, line]
            where = os.path.basename(file) if file == home[0] else file
            table.append([f"{where}:{line}", *row.cells(calls.total), _text(file, line)])
            for (category, text), part in row.parts.items():
                table.append([f"  {category}", *part.cells(calls.total), f"  {text}"])
        pieces[-1] += columns(table, left=(0, 5))
    return "\n".join(pieces)
