"""The errors that picokernel raises, and how diagnostics of the core become one of them."""

import builtins
import linecache
import re

_RAISED = re.compile(r"thread \(.*?\) of block \(.*?\) raises (\w+)")


class Error(Exception):
    """Base of every error of picokernel.

    `diagnostics` holds all that is wrong, in order, each as
    (severity, file, line, column, end_column, message, notes); line 0 means that no place is known.
    """

    diagnostics = ()


class CompileError(Error, SyntaxError):
    """The kernel's text is wrong. A SyntaxError, so that tracebacks show the kernel's line with a caret."""


class LaunchError(Error, ValueError):
    """The arguments of a call are wrong. Nothing was written."""


class KernelError(Error, RuntimeError):
    """A running kernel failed a check."""


class InternalError(Error, RuntimeError):
    """A bug in picokernel. The text holds the IR where it is known."""


def as_raised(error):
    """A KernelError for what a kernel raises is an exception of that class, too."""
    found = _RAISED.match(str(error))
    kind = getattr(builtins, found[1], None) if found else None
    if kind is None:
        return error
    both = type(found[1], (KernelError, kind), {"__module__": KernelError.__module__})
    made = both(*error.args)
    made.diagnostics = error.diagnostics
    return made


def at_line(kind, message, location, notes=()):
    """An error of this kind about one place: (file, line, column, end_column)."""
    return from_diagnostics(kind, [("error", *location, message, tuple(notes))])


def from_diagnostics(kind, diagnostics):
    """One error for diagnostics as in `Error.diagnostics`. The first with a place is the one shown."""
    diagnostics = list(diagnostics)
    first = next((d for d in diagnostics if d[2]), diagnostics[0])
    if kind is CompileError:
        rest = [d for d in diagnostics if d is not first]
        message = "\n".join([_sentence(first), *(_with_place(d) for d in rest)])
        error = CompileError(message, _syntax_details(first)) if first[2] else CompileError(message)
    else:
        error = kind("\n".join(_with_place(d) for d in diagnostics))
    error.diagnostics = tuple(diagnostics)
    return error


def _sentence(diagnostic):
    return "\n  ".join([diagnostic[5], *diagnostic[6]])


def _with_place(diagnostic):
    _, file, line, column, end_column, _, _ = diagnostic
    if not line:
        return _sentence(diagnostic)
    text = f'{_sentence(diagnostic)}\n  File "{file}", line {line}'
    source = linecache.getline(file, line).rstrip()
    if source:
        indent = len(source) - len(source.lstrip())
        width = max((end_column or column + 1) - column, 1)
        text += f"\n    {source[indent:]}"
        if column > indent:
            text += f"\n    {' ' * (column - 1 - indent)}{'^' * width}"
    return text


def _syntax_details(diagnostic):
    _, file, line, column, end_column, _, _ = diagnostic
    source = linecache.getline(file, line) or None
    if not end_column:
        end_column = len(source.rstrip()) + 1 if source else 0
    return (file, line, column or 1, source, line, max(end_column, (column or 1) + 1))
