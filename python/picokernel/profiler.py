"""Profiles: what ran, for how long, and a trace to open at ui.perfetto.dev."""

import linecache
import os

from . import _core
from ._core import TraceEvent
from .errors import LaunchError
from .sources import count_scratch


def _nothing():
    pass


def _metal_capture(path):
    """What starts and ends MLX's capture of a GPU's work into a file."""
    if path is None:
        return _nothing, _nothing
    try:
        from mlx.core import metal
    except ImportError:
        problem = "MLX is not installed"
    else:
        problem = None if metal.is_available() else "this MLX has no Metal"
    if problem:
        raise LaunchError(
            f"metal_capture records what a Mac's GPU does for MLX, and {problem}\n"
            "  hint: leave it out; split=True shows the operations of MLX sources on every machine"
        )

    def start():
        try:
            metal.start_capture(os.fspath(path))
        except (RuntimeError, ValueError) as error:
            raise LaunchError(
                f"MLX cannot capture into '{os.fspath(path)}': {error}\n"
                "  hint: set MTL_CAPTURE_ENABLED=1 before Python starts; the file must not exist"
            ) from None

    return start, metal.stop_capture


def _tell_ceilings():
    from .ceilings import tell_profiles

    tell_profiles()


class _Reports:
    """What is made of a recording."""

    def lines(self):
        """Time per line of the user's kernels, as text: for each kernel and backend the lines of its
        Python source, and under each what ran for it, such as the operations of the printed source.
        Units are written out; counts of a line are calls of the kernel, shares are of the kernel's
        calls. What belongs to no line stands at the kernel's `def`: the launch where a backend runs
        all of it at once, copies, allocations, the rest of the call, and what ran after it."""
        return self._core_profile()._lines(linecache.getline)

    def to_html(self, path):
        """Writes one HTML file that asks for nothing outside of it: a timeline to zoom and to hover
        over, with a row per backend and thread, `table()` and `lines()`. Of more than 100,000 events
        it has the longest and says so. Raises picokernel.Error if it cannot be written."""
        from .report import write
        from .timeline import page

        write(path, page(self))


class Profiler(_Reports, _core.Profile):
    """Records from its construction, or as a context manager, until `stop`.

    With a path, `stop` writes a Chrome trace there. `events` lists what was recorded, `table()`
    sums it up by name, `lines()` by line of the kernels; `save(path)` and `to_html(path)` write files.
    """

    def __init__(self, path=None, split=False, metal_capture=None):
        start, self._end_capture = _metal_capture(metal_capture)
        _tell_ceilings()
        start()
        if path is not None:
            from .report import require_folder

            require_folder(path)
        super().__init__("" if path is None else os.fspath(path), bool(split))
        count_scratch()
        self._stopped, self._kept = False, None  # the list of a recording that has ended

    @property
    def events(self) -> "list[TraceEvent]":
        """All that was recorded up to now, a list of TraceEvent, ordered by process, thread and time;
        spans of a thread nest or are disjoint."""
        events = self._list_events() if self._kept is None else self._kept
        if self._stopped:
            self._kept = events
        return events

    def stop(self):
        """Ends the recording and writes the file, if a path was given. Raises picokernel.Error if it
        cannot be written. Once stopped, nothing more happens."""
        self._stopped = True
        end, self._end_capture = self._end_capture, _nothing
        try:
            end()
        finally:
            _tell_ceilings()  # measured meanwhile, or of a library that was imported meanwhile
            super().stop()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.stop()

    def save(self, path):
        """Writes a Chrome trace. Raises picokernel.Error if it cannot be written."""
        self._save(os.fspath(path))

    def _core_profile(self):
        return self

    @staticmethod
    def merge(first, second, name=""):
        """Both profiles side by side, every backend with rows of its own."""
        return Merged(first, second, name)


class Merged(_Reports):
    """Two profiles side by side."""

    def __init__(self, first, second, name=""):
        self._profile = _core.Profile.merge(first._core_profile(), second._core_profile(), name)
        self.events = self._profile._list_events()

    def _core_profile(self):
        return self._profile

    def table(self):
        return self._profile.table()

    def save(self, path):
        self._profile._save(os.fspath(path))

    merge = Profiler.merge
