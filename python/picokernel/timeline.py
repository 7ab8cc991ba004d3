"""A profile as one HTML file: `Profiler.to_html`. What draws it is timeline.html."""

import heapq
import importlib.resources
import json
from html import escape

from .report import duration

MOST_EVENTS = 100_000  # browsers draw that many without a pause


class _Numbers(dict):
    """Number of each key, in order of appearance."""

    def __missing__(self, key):
        self[key] = len(self)
        return self[key]


def _kept(events):
    """The events to draw, and what is to be said about the others."""
    drawn = [e for e in events if e.phase in "Xi"]
    if len(drawn) <= MOST_EVENTS:
        return drawn, ""
    order = heapq.nlargest(MOST_EVENTS, range(len(drawn)), key=lambda i: drawn[i].duration_ns)
    shortest = duration(drawn[order[-1]].duration_ns)
    note = f"The {MOST_EVENTS:,} longest of {len(drawn):,} events; none of the others took more than {shortest}."
    return [drawn[i] for i in sorted(order)], note


def _text_of(args):
    """As JSON, which knows neither NaN nor infinity."""
    return json.dumps({k: f"{v:.6g}" if isinstance(v, float) else v for k, v in args.items()})


def page(profile):
    """The file's text."""
    events, note = _kept(profile.events)
    tracks, names, args = _Numbers(), _Numbers(), _Numbers()
    rows = [
        (
            tracks[e.pid, e.tid, e.process, e.thread],
            names[e.name],
            names[e.category],
            e.begin_ns,
            e.duration_ns,
            args[_text_of(e.args)],
        )
        for e in events
    ]
    data = {
        "tracks": [f"{process} · {thread}" for _, _, process, thread in tracks],
        "names": list(names),
        "args": [json.loads(text) for text in args],
        "events": rows,
    }
    # Inside of a script element only `<` could end it; in JSON it occurs in strings only.
    parts = {
        "DATA": json.dumps(data, separators=(",", ":")).replace("<", "\\u003c"),
        "NOTE": escape(note),
        "TABLE": escape(profile.table()),
        "LINES": escape(profile.lines()),
    }
    text = importlib.resources.files(__package__).joinpath("timeline.html").read_text("utf-8")
    pieces = text.split("@@")  # text, name of a part, text, ...
    pieces[1::2] = [parts[name] for name in pieces[1::2]]
    return "".join(pieces)
