"""What an experiment shows, as values: tables, sentences, a chart. Printed they are Markdown."""

from dataclasses import dataclass, field
from html import escape


@dataclass
class Table:
    """Rows of texts below `head`; the first `left` columns begin at their left."""

    head: list
    rows: list
    left: int = 1
    title: str = ""

    def text(self):
        rows = [list(self.head), *map(list, self.rows)]
        widths = [max(3, *map(len, column)) for column in zip(*rows, strict=True)]
        rule = ["-" * w if i < self.left else "-" * (w - 1) + ":" for i, w in enumerate(widths)]
        rows.insert(1, rule)
        lines = [f"**{self.title}**\n"] if self.title else []
        for row in rows:
            cells = (
                text.ljust(w) if i < self.left else text.rjust(w)
                for i, (text, w) in enumerate(zip(row, widths, strict=True))
            )
            lines.append(f"| {' | '.join(cells)} |")
        return "\n".join(lines) + "\n"

    def html(self):
        def row(cells, tag):
            side = [' class="left"' if i < self.left else "" for i in range(len(cells))]
            return "".join(
                f"<{tag}{s}>{code_html(text)}</{tag}>" for s, text in zip(side, cells, strict=True)
            )

        body = "".join(f"<tr>{row(cells, 'td')}</tr>\n" for cells in self.rows)
        title = f"<caption>{escape(self.title)}</caption>" if self.title else ""
        return f"<table>{title}<thead><tr>{row(self.head, 'th')}</tr></thead>\n<tbody>{body}</tbody></table>\n"


@dataclass
class Section:
    """One experiment: what was measured, in a sentence or two; what came out. `chart` makes a plotly
    figure, when it is called."""

    title: str
    about: str
    tables: list = field(default_factory=list)
    sentences: list = field(default_factory=list)
    chart: object = None

    def text(self):
        parts = [f"## {self.title}\n", f"{self.about}\n"]
        parts += [table.text() for table in self.tables]
        parts += ["\n".join(f"- {s}" for s in self.sentences) + "\n"] if self.sentences else []
        return "\n".join(parts)


def code_html(markdown):
    """Of Markdown only code is used."""
    pieces = escape(markdown).split("`")
    return "".join(f"<code>{p}</code>" if i % 2 else p for i, p in enumerate(pieces))


def time_of(seconds, digits=3):
    """`1.25 ms`, of three digits."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{number(seconds / size, digits)} {unit}"
    return f"{number(seconds * 1e9, digits)} ns"


def number(value, digits=3):
    """Of `digits` digits, never in exponents: `0.00124`, `12.4`, `12,400`."""
    if value == 0:
        return "0"
    text = f"{value:.{digits}g}"
    return f"{float(text):,.0f}" if abs(value) >= 10 ** (digits - 1) else _plain(float(text))


def _plain(value):
    text = f"{value:.12f}".rstrip("0")
    return text.rstrip(".")


def size_text(n):
    """`1e7`, `3e5`, `37`."""
    digits = str(n)
    bare = digits.rstrip("0")
    return f"{bare}e{len(digits) - 1}" if len(bare) == 1 and n >= 1000 else f"{n:,}"
