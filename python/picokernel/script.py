"""`picokernel run` and `picokernel profile`: a program as it is, with a profile of all that it does."""

import os
import runpy
import sys
import types

from .errors import Error
from .profiler import Profiler


def _own_traceback(error):
    """Without the frames that lie outside of the program's."""
    traceback = error.__traceback__
    while traceback is not None:
        file = traceback.tb_frame.f_code.co_filename
        if file not in (__file__, runpy.__file__) and not file.startswith("<frozen "):
            break
        traceback = traceback.tb_next
    return traceback


def _execute(program, is_module):
    if is_module:
        return runpy.run_module(program, run_name="__main__", alter_sys=True)
    path = os.path.abspath(program)
    if os.path.isdir(path) or path.endswith((".pyc", ".pyz", ".zip")):
        return runpy.run_path(program, run_name="__main__")
    # Unlike runpy's, argv[0] stays as given, __file__ is absolute, and __main__ lives on for what
    # runs at exit.
    with open(path, "rb") as file:
        code = compile(file.read(), path, "exec", dont_inherit=True)
    main = types.ModuleType("__main__")
    main.__file__ = path
    sys.modules["__main__"] = main
    exec(code, main.__dict__)


def _run(program, arguments, is_module):
    """Runs it as Python does. Gives its exit status, or raises its SystemExit."""
    sys.argv[:] = [program, *arguments]
    if not sys.flags.safe_path:
        sys.path[0] = os.getcwd() if is_module else os.path.dirname(os.path.realpath(program))
    try:
        _execute(program, is_module)
    except SystemExit:
        raise
    except BaseException as error:
        traceback = _own_traceback(error)
        if traceback is None and isinstance(error, (ImportError, OSError)):  # there is no program
            raise Error(str(error)) from None
        sys.excepthook(type(error), error.with_traceback(traceback), traceback)
        return 130 if isinstance(error, KeyboardInterrupt) else 1
    return 0


def _report(profile, out, html):
    """False, with the reasons said, if a file cannot be written."""
    profile.stop()
    print(profile.table() + "\n" + profile.lines(), end="", file=sys.stderr)
    written = True
    for path, write in ((out, profile.save), (html, profile.to_html)):
        try:
            if path is not None:
                write(path)
                print(f"written: {path}", file=sys.stderr)
        except Error as error:
            print(f"picokernel: {error}", file=sys.stderr)
            written = False
    return written


def run(program, arguments, is_module):
    """Runs a script or a module. Gives its exit status; raises Error if there is no such program,
    SystemExit if it does."""
    if not is_module and not os.path.exists(program):
        raise Error(f"there is no script '{program}'")
    return _run(program, arguments, is_module)


def profile(program, arguments, is_module, out=None, html=None):
    """Runs a script or a module, writes its trace and reports to stderr, however it ends. Gives its
    exit status, or 1 if it went well and a file cannot be written. Raises what `run` does."""
    name = program if is_module else os.path.splitext(os.path.basename(os.path.abspath(program)))[0]
    out = os.path.abspath(out or f"{name}.trace.json")
    html = html and os.path.abspath(html)
    process, profiler, end = os.getpid(), Profiler(), None
    try:
        status = run(program, arguments, is_module)
    except SystemExit as error:
        status, end = 0, error
    except Error:
        profiler.stop()
        raise
    written = os.getpid() != process or _report(profiler, out, html)  # not in what it has forked
    if end is not None:
        raise end
    return status or int(not written)
