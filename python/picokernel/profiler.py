"""Profiles: what ran, for how long, and a trace to open at ui.perfetto.dev."""

import os

from . import _core


class Profiler(_core.Profile):
    """Records from its construction, or as a context manager, until `stop`.

    With a path, `stop` writes a Chrome trace there. `events()` lists what was recorded, `table()`
    sums it up, `save(path)` writes it.
    """

    def __init__(self, path=None):
        super().__init__("" if path is None else os.fspath(path))

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.stop()

    def save(self, path):
        """Writes a Chrome trace. Raises picokernel.Error if it cannot be written."""
        self._save(os.fspath(path))

    @staticmethod
    def merge(first, second, name=""):
        """Both profiles side by side, every backend with rows of its own."""
        return Merged(first, second, name)


class Merged:
    """Two profiles side by side."""

    def __init__(self, first, second, name=""):
        parts = (p._profile if isinstance(p, Merged) else p for p in (first, second))
        self._profile = _core.Profile.merge(*parts, name)

    def events(self):
        return self._profile.events()

    def table(self):
        return self._profile.table()

    def save(self, path):
        self._profile._save(os.fspath(path))

    merge = Profiler.merge
