"""`picokernel trace merge` and `trace compare`: on files that a profile has written."""

import json
import os
from collections import defaultdict

from . import _core
from .errors import Error
from .report import columns, duration, write


def _load(path):
    """The events of a legal trace, and what it says about itself."""
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
    except OSError as error:
        raise Error(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise Error(f"{path}: the file is no text in UTF-8") from None
    if wrong := _core.check_trace(text):
        raise Error(f"{path}: {wrong[0]}")
    trace = json.loads(text)
    return (
        (trace, {})
        if isinstance(trace, list)
        else (trace["traceEvents"], trace.get("otherData", {}))
    )


def _labels(paths):
    """A short name for each file: no two are equal."""
    labels = [os.path.basename(path).removesuffix(".json").removesuffix(".trace") for path in paths]
    if len(set(labels)) < len(labels):
        labels = [f"{number}: {path}" for number, path in enumerate(paths, 1)]
    return labels


def merge(out, paths):
    """Writes the traces at `paths` as one, each beginning at 0, a process row for each of each.
    Raises Error, and writes nothing, if one of them is bad or `out` cannot be written."""
    if os.path.realpath(out) in map(os.path.realpath, paths):
        raise Error(
            f"{out} is one of the traces to merge\n  hint: name another file for the result"
        )
    merged, about = [], {}
    pids, ids = {}, {}
    traces = [_load(path) for path in paths]
    for label, (events, other) in zip(_labels(paths), traces, strict=True):
        about |= {f"{label}: {key}": value for key, value in other.items()}
        begin = min((round(e["ts"] * 1000) for e in events if e["ph"] != "M"), default=0)
        names = {}
        for e in events:
            pid = pids.setdefault((label, e["pid"]), len(pids) + 1)
            names.setdefault(pid, f"process {e['pid']}")
            if e["ph"] == "M" and e["name"] == "process_name":
                names[pid] = e["args"]["name"]
                continue
            e = e | {"pid": pid}
            if e["ph"] != "M":
                e["ts"] = (round(e["ts"] * 1000) - begin) / 1000
            for key in {"id", "bind_id"} & e.keys():  # flows of two files are two
                e[key] = ids.setdefault((label, json.dumps(e[key])), len(ids) + 1)
            merged.append(e)
        merged += [
            {"ph": "M", "name": "process_name", "pid": pid, "args": {"name": f"{name} ({label})"}}
            for pid, name in names.items()
        ]
    body = ",\n".join(json.dumps(e, separators=(",", ":")) for e in merged)
    head = json.dumps(about)
    write(out, f'{{"displayTimeUnit":"ns",\n"otherData":{head},\n"traceEvents":[\n{body}\n]}}\n')


def _durations(events):
    """(process, category, name) -> durations of its spans, in nanoseconds."""
    processes = {
        e["pid"]: e["args"]["name"]
        for e in events
        if e["ph"] == "M" and e["name"] == "process_name"
    }
    found = defaultdict(list)
    for e in events:
        if e["ph"] == "X":
            process = processes.get(e["pid"], str(e["pid"]))
            found[process, e.get("cat", ""), e["name"]].append(round(e["dur"] * 1000))
    return found


def compare(first, second):
    """Both traces side by side, as text: for each event its count and mean duration in each and the
    ratio of the means, by total time. Backends are told apart, except if each trace has one.
    Raises Error if a file is bad."""
    sides = [_durations(_load(path)[0]) for path in (first, second)]
    backends = [{process for process, _, _ in side} - {"host"} for side in sides]
    if all(len(names) <= 1 for names in backends):
        sides = [
            {("" if key[0] in names else key[0], *key[1:]): ns for key, ns in side.items()}
            for side, names in zip(sides, backends, strict=True)
        ]
    rows = [["process", "category", "name", "count A", "count B", "mean A", "mean B", "B/A"]]
    keys = {key: sum(sum(side.get(key, ())) for side in sides) for side in sides for key in side}
    for key in sorted(keys, key=lambda key: (-keys[key], key)):
        times = [side.get(key) for side in sides]
        means = [sum(ns) / len(ns) if ns else None for ns in times]
        ratio = f"{means[1] / means[0]:.2f}" if means[0] and means[1] is not None else "-"
        counts = [str(len(ns)) if ns else "-" for ns in times]
        shown = [duration(mean) if mean is not None else "-" for mean in means]
        rows.append([*key, *counts, *shown, ratio])
    return f"A: {first}\nB: {second}\n\n" + columns(rows, left=(0, 1, 2))
