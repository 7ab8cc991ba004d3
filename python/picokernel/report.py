"""What reports share: durations, columns, and files that are whole or not there."""

import contextlib
import os

from .errors import Error


def duration(ns):
    """As in the core's table: `1.25 ms`."""
    for unit, size in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if ns >= size:
            return f"{ns / size:.2f} {unit}"
    return f"{ns:.0f} ns"


def columns(rows, left):
    """Rows of texts, aligned; `left` has the numbers of the columns that begin at their left."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = (
            text.ljust(width) if i in left else text.rjust(width)
            for i, (text, width) in enumerate(zip(row, widths, strict=True))
        )
        lines.append("  ".join(cells).rstrip() + "\n")
    return "".join(lines)


def require_folder(path):
    """Raises Error if no file can be made at `path`: known before the work and not after it."""
    folder = os.path.dirname(os.path.abspath(os.fspath(path)))
    if not os.path.isdir(folder):
        raise Error(f"'{os.fspath(path)}' cannot be written: there is no folder {folder}")


def write(path, text):
    """A reader never sees half a file, and an older one survives a full disk."""
    path = os.fspath(path)
    partial = path + ".partial"
    try:
        with open(partial, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)
        os.replace(partial, path)
    except OSError as error:
        with contextlib.suppress(OSError):
            os.remove(partial)
        raise Error(f"'{path}' cannot be written: {error.strerror}") from None
