"""Cells of notebooks, as IPython runs them: exec, with the text in linecache only."""

import json
import linecache
import pathlib
import traceback
from html.parser import HTMLParser

import numpy as np
import picokernel as pk
import pytest
from oracle import assert_same

X = np.arange(4.0)


class Notebook:
    """One namespace; `name` gives the file of the next cell."""

    def __init__(self, name="<ipython-input-{}-0123>"):
        self.name = name
        self.count = 0
        self.space = {"__name__": "__main__", "np": np, "pk": pk, "X": X}

    def run(self, text):
        self.count += 1
        file = self.name.format(self.count)
        linecache.cache[file] = (len(text), None, text.splitlines(True), file)
        exec(compile(text, file, "exec"), self.space)
        return self.space.get("result")


@pytest.fixture(params=["<ipython-input-{}-0123>", "/tmp/ipykernel_77/{}.py", "<stdin>"])
def notebook(request):
    notebook = Notebook(request.param)
    yield notebook
    for file in list(linecache.cache):
        if file.startswith(("<ipython", "/tmp/ipykernel", "<stdin>")):
            del linecache.cache[file]


KERNEL = """
@pk.kernel
def kernel(x):
    return {}
result = kernel(X)
"""


def test_a_kernel_defined_again_is_the_new_one(notebook):
    assert_same(notebook.run(KERNEL.format("x + 1")), X + 1)
    assert_same(notebook.run(KERNEL.format("x * 2")), X * 2)
    assert_same(notebook.run(KERNEL.format("x + 1")), X + 1)
    assert_same(notebook.run("result = kernel(X)"), X + 1)


def test_what_a_kernel_reads_is_defined_again(notebook):
    notebook.run("""
scale = 2.0
def helper(x):
    return x * scale
@pk.kernel
def inner(x):
    return helper(x) + 1
@pk.kernel
def kernel(x):
    return inner(x) - 3
""")
    call = "result = kernel(X)"
    for _ in range(2):
        assert_same(notebook.run(call), X * 2 + 1 - 3)
    notebook.run("scale = 5.0")
    assert_same(notebook.run(call), X * 5 + 1 - 3)
    notebook.run("def helper(x):\n    return x / scale")
    assert_same(notebook.run(call), X / 5 + 1 - 3)
    notebook.run("@pk.kernel\ndef inner(x):\n    return helper(x) + 7")
    assert_same(notebook.run(call), X / 5 + 7 - 3)


def test_errors_show_the_lines_of_their_cell(notebook):
    for condition in ("x > 1", "x < 2"):
        text = f"""
@pk.kernel
def kernel(x):
    if {condition}:
        return x
    return x + 1
kernel(X)
"""
        with pytest.raises(pk.CompileError) as caught:
            notebook.run(text)
        shown = "".join(traceback.format_exception(caught.value))
        assert f"if {condition}:" in shown and "^" in shown
        assert caught.value.lineno == 4
        assert caught.value.filename == notebook.name.format(notebook.count)


class Tags(HTMLParser):
    def __init__(self):
        super().__init__()
        self.open, self.text = [], ""

    def handle_starttag(self, tag, attributes):
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def html_of(kernel):
    tags = Tags()
    tags.feed(kernel._repr_html_())
    assert tags.open == []
    return tags.text


def test_html():
    @pk.kernel
    def kernel(x, mode="<b>&"):
        return x * 2 if mode == "<b>&" else x + 1

    text = html_of(kernel)
    assert "<locals>.kernel(x, mode='<b>&')" in text and "test_notebook.py:" in text
    assert "backends: " in text and "parallel" not in text
    with pk.profile() as p:
        html_of(kernel)
    assert not [e for e in p.events if e.category == "compile"]  # showing compiles nothing
    kernel(X)
    kernel(X.astype(np.float32), "plain", backend="numpy")
    text = html_of(kernel)
    assert "float64 (4,)" in text and "'<b>&'" in text
    assert text.index("numpyfloat32 (4,)'plain'") < text.index("float64 (4,)")
    assert kernel.ir() in text
    assert "<b>" not in kernel._repr_html_()


def test_the_example_runs(notebook, capsys):
    path = pathlib.Path(__file__).resolve().parents[2] / "examples/notebook.ipynb"
    content = json.loads(path.read_text())
    assert (content["nbformat"], content["nbformat_minor"]) == (4, 5)
    code = [cell for cell in content["cells"] if cell["cell_type"] == "code"]
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in code)
    assert len({cell["id"] for cell in content["cells"]}) == len(content["cells"])
    for cell in code:
        notebook.run("".join(cell["source"]))
    signal, smoothed = notebook.space["signal"], notebook.space["smoothed"]
    assert_same(smoothed[1:-1], signal[1:-1] + ((signal[:-2] + signal[2:]) / 2 - signal[1:-1]))
    html_of(notebook.space["smooth"])
    shown = capsys.readouterr().out
    for text in (
        "parallel",
        "np.add(",
        "category",
        "█",
        "True\n",
        "truth of a traced",
        "if x > 0:",
    ):
        assert text in shown
