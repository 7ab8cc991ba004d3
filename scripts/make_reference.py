"""Writes docs/reference-python.md and docs/reference-cpp.md. `--check` only compares; a test does.

Python: signatures and docstrings, those of the core from _core.pyi. C++: the public headers without
bodies, private parts and `detail`; comments that begin with /// stay.
"""

import ast
import inspect
import re
import sys
import textwrap
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "python"))

import picokernel  # noqa: E402
from picokernel import _core, cost_model, explain, profiler, simt  # noqa: E402

# Sections and their names; what is public and missing here is an error.
PYTHON = {
    "Kernels": [picokernel.kernel, picokernel.Kernel, picokernel.functions],
    "Kernels of threads": [simt.jit, simt.Jit],
    "Functions that NumPy lacks": [picokernel.erf, picokernel.erfc, picokernel.rsqrt],
    "Backends": [
        picokernel.backends, picokernel.use, explain.Explanation, cost_model.Cost, cost_model.Work,
    ],
    "Profiles": [picokernel.profile, profiler.Profiler, picokernel.span, _core.TraceEvent],
    "Memory and threads": [
        picokernel.empty, picokernel.trim, picokernel.num_threads, picokernel.set_num_threads,
    ],
    "Errors": [
        picokernel.Error, picokernel.CompileError, picokernel.LaunchError, picokernel.KernelError,
        picokernel.InternalError,
    ],
}  # fmt: skip
FROM_NUMPY = ["clip", "maximum", "minimum", "where"]

HEADERS = [
    "kernel", "accuracy", "expr", "array", "dtype", "half", "diagnostic", "profile", "memory", "stop",
    "simt",
]  # fmt: skip


# ---- Python


def stubs():
    """Name -> its definition in _core.pyi, members as Class.name."""
    found = {}
    for node in ast.parse((ROOT / "python/picokernel/_core.pyi").read_text()).body:
        if isinstance(node, ast.FunctionDef):
            found[node.name] = node
        elif isinstance(node, ast.ClassDef):
            for member in node.body:
                if isinstance(member, ast.FunctionDef):
                    found[f"{node.name}.{member.name}"] = member
                elif isinstance(member, ast.AnnAssign):
                    found[f"{node.name}.{member.target.id}"] = member
    return found


STUBS = stubs()


def arguments_of(thing, stub):
    """`(a, b=1)`, without self."""
    node = STUBS.get(stub)
    if isinstance(node, ast.FunctionDef):
        text, result = ast.unparse(node.args), ast.unparse(node.returns)
        text = re.sub(r"^self(, )?", "", text)
        return f"({text})" + (f" -> {result}" if result not in ("None", "Any") else "")
    signature = inspect.signature(thing)
    kept = [p for p in signature.parameters.values() if p.name != "self"]
    return str(signature.replace(parameters=kept))


def docstring(thing):
    text = inspect.cleandoc(thing.__doc__ or "")
    # nanobind puts the signature before the text.
    text = re.sub(r"\A\w+\(.*\) -> [^\n]*\n*", "", text)
    if not text:
        raise SystemExit(f"{thing!r} has no docstring")
    return text


def members_of(cls):
    """Public members and those of its bases in the core: (name, member, where its stub is)."""
    seen = {}
    for base in cls.__mro__[:-1]:
        if base.__module__.startswith("picokernel"):
            for name, member in vars(base).items():
                if not name.startswith("_") and name not in (
                    *seen,
                    "inline",
                ):  # the core calls that
                    seen[name] = (member, f"{base.__name__}.{name}")
    return [(name, *rest) for name, rest in seen.items()]


def python_entry(thing):
    name = thing.__name__
    core = f"{name}.__init__" if inspect.isclass(thing) else name
    is_error = inspect.isclass(thing) and issubclass(thing, BaseException)
    shown = name if is_error or thing is _core.TraceEvent else name + arguments_of(thing, core)
    lines = [f"### `{shown}`", "", docstring(thing), ""]
    if inspect.isclass(thing) and not is_error:
        for member, value, stub in members_of(thing):
            if isinstance(value, property):
                node = STUBS.get(stub)
                kind = (
                    ast.unparse(node.annotation) if node else value.fget.__annotations__["return"]
                )
                lines += [f"- `{member}: {kind}`: {docstring(value)}"]
                continue
            if not callable(value) and not isinstance(value, staticmethod):
                continue
            function = value.__func__ if isinstance(value, staticmethod) else value
            text = textwrap.indent(docstring(function), "  ").strip()
            lines += [f"- `{member}{arguments_of(function, stub)}`: {text}"]
        lines.append("")
    return "\n".join(lines)


def python_reference():
    documented = {thing.__name__ for things in PYTHON.values() for thing in things}
    missing = set(picokernel.__all__) - documented - set(FROM_NUMPY) - {"__version__"}
    if missing:
        raise SystemExit(f"not in the reference: {', '.join(sorted(missing))}")
    pieces = [
        "# Reference: Python\n",
        "Made by `scripts/make_reference.py` from the docstrings. `import picokernel as pk`;"
        " the profiler's class is in `picokernel.profiler`.\n",
    ]
    for section, things in PYTHON.items():
        pieces.append(f"## {section}\n")
        pieces += [python_entry(thing) for thing in things]
    names = textwrap.fill(", ".join(picokernel.functions()), 110)
    pieces += [
        "## Functions in kernels\n",
        "NumPy's own, called by NumPy's names; `pk."
        + "`, `pk.".join(FROM_NUMPY)
        + "` are theirs too."
        " What each means: [semantics.md](semantics.md).\n",
        f"```\n{names}\n```\n",
    ]
    return "\n".join(pieces)


# ---- C++

MACRO = re.compile(r"^#define (PK_\w+)\(X\)((?:.*\\\n)*.*)", re.M)


def without_preprocessor(text):
    text = re.sub(r"^[ \t]*#(?:.*\\\n)*.*\n", "", text, flags=re.M)
    return re.sub(r"^ *PK_\w+\(PK_\w+\)(?=[\n;])", "", text, flags=re.M)


def end_of_group(text, at):
    """The index after the bracket that closes the one at `at`; comments and literals are skipped."""
    closing = {"{": "}", "(": ")"}[text[at]]
    depth = 0
    while at < len(text):
        if text.startswith("//", at):
            at = text.index("\n", at)
        elif text[at] in "\"'" and not (text[at] == "'" and text[at - 1].isdigit()):
            at += re.match(r"(['\"])(?:\\.|[^\\])*?\1", text[at:]).end() - 1
        elif text[at] in "{(" and text[at] == {"}": "{", ")": "("}[closing]:
            depth += 1
        elif text[at] == closing:
            depth -= 1
            if depth == 0:
                return at + 1
        at += 1
    raise ValueError("a bracket is not closed")


def statements(text):
    """(comment, declaration, body or None, trailing comment) of each statement of a scope."""
    comment, at = [], 0
    while match := re.compile(r"\s*").match(text, at):
        at = match.end()
        if at >= len(text):
            return
        if text.startswith("//", at):
            end = text.index("\n", at)
            line = text[at:end]
            comment = [*comment, line[3:].strip()] if line.startswith("///") else []
            at = end
            continue
        label = re.compile(r"(public|private|protected):").match(text, at)
        if label:
            yield [], label[0], None, ""
            at = label.end()
            comment = []
            continue
        start, body = at, None
        while True:
            if text[at] == "(":
                at = end_of_group(text, at)
            elif text[at] == "{":
                end = end_of_group(text, at)
                body = text[at + 1 : end - 1]
                head = text[start:at]
                at = end
                tail = re.compile(r"(\(\))?[ \t]*;").match(text, at)
                at = tail.end() if tail else at
                if head.rstrip().endswith("= []"):  # a variable that a lambda initialises
                    head, body = head.rstrip().removesuffix("= []"), None
                    break
                # A braced initialiser is part of what it initialises.
                if re.search(r"=\s*$|\w\s*$", head) and tail and not re.match(
                    r"\s*(template|class|struct|enum|namespace)", head
                ):  # fmt: skip
                    head, body = text[start:at].rstrip(";"), None
                break
            elif text[at] == ";":
                head = text[start:at]
                at += 1
                break
            else:
                at += 1
        trailing = re.compile(r"[ \t]*// ?(.*(?:\n[ \t]{12,}// .*)*)").match(text, at)
        note = ""
        if trailing:
            note = re.sub(r"\s*\n\s*// ", " ", trailing[1])
            at = trailing.end()
        yield comment, head, body, note
        comment = []


def flat(text):
    text = re.sub(r"//.*", "", text)
    text = re.sub(r"\s+", " ", text).strip()
    return re.sub(r"\bPK_API ", "", text)


def signature_of(head):
    """Without what initialises members and without `inline`."""
    head = flat(head)
    depth = 0
    for i, c in enumerate(head):
        depth += (c in "(<{") - (c in ")>}")
        if depth == 0 and head[i : i + 3] == " : " and ")" in head[:i]:
            head = head[:i]
            break
    return re.sub(r"\b(inline|constexpr) ", "", head)


def wrapped(text, indent):
    """In lines of 100; the parameters of a template have their own."""
    lines = []
    if text.startswith("template <"):
        depth = 0
        for i, c in enumerate(text):
            depth += (c == "<") - (c == ">")
            if c == ">" and depth == 0:
                lines.append(indent + text[: i + 1])
                text = text[i + 1 :].strip()
                break
    lines.append(
        textwrap.fill(
            text, 100, initial_indent=indent, subsequent_indent=indent + "    ",
            break_long_words=False, break_on_hyphens=False,
        )
    )  # fmt: skip
    return "\n".join(lines)


def skipped(head):
    return re.match(
        r"template <>|friend\b|static_assert|class SourceLocation|inline Operand::", head
    ) or re.search(r"\bkDTypeCount|\bkRealDTypeCount|operator T\(\)", head)


def declarations(text, indent=""):
    lines, public = [], True
    for comment, head, body, note in statements(text):
        short = flat(head)
        if re.match(r"(public|private|protected):", short):
            public = short == "public:"
            continue
        if re.match(r"namespace picokernel\b", short):
            lines += declarations(body, indent)
            continue
        if not public or short.startswith("namespace") or skipped(short) or not short:
            continue
        lines += [f"{indent}// {line}".rstrip() for line in comment]
        if body is not None and re.match(r"(template <.*> )?(class|struct) ", short):
            if re.search(r"(?:^|> )class \w+", short):
                body = "private:\n" + body
            lines += [wrapped(short + " {", indent), *declarations(body, indent + "  ")]
            lines += [indent + "};", ""]
        elif body is not None and short.startswith("enum"):
            values = flat(body)
            if "#" in body or not values or "PK_" in values:
                values = "..."
            lines += [wrapped(f"{short} {{ {values} }};", indent), ""]
        else:
            text = signature_of(head)
            line = wrapped(text + ";", indent)
            fits = note and "\n" not in line and len(line) + len(note) < 96
            if note and not fits:
                lines.append(wrapped("// " + note, indent))
            lines.append(line + (f"  // {note}" if fits else ""))
            if not indent:
                lines.append("")
    return lines


def functions_of_macros(text):
    """What the header's tables define: operators and functions by arity."""
    tables = {name: re.findall(r"X\((\S+?)[,)]", body) for name, body in MACRO.findall(text)}
    shown = {
        "PK_BINARY_OPERATORS": "Expr operator+(Operand a, Operand b), and with = after it, of",
        "PK_COMPARISONS": "Expr operator==(Operand a, Operand b), of",
        "PK_UNARY_FUNCTIONS": "Expr f(Operand a), f being",
        "PK_BINARY_FUNCTIONS": "Expr f(Operand a, Operand b), f being",
        "PK_REAL_DTYPES": "DType, real:",
        "PK_DTYPES": "DType, complex:",
    }
    lines = []
    for name, what in shown.items():
        if name in tables:
            separator = " " if "operator" in what else ", "
            lines += textwrap.wrap(
                f"{what} {separator.join(tables[name])}", 98, initial_indent="// ",
                subsequent_indent="//     ",
            )  # fmt: skip
    return [*lines, ""] if lines else []


def cpp_reference():
    pieces = [
        "# Reference: C++\n",
        "Made by `scripts/make_reference.py` from the headers: their public declarations, without"
        " bodies. `#include <picokernel/picokernel.h>` has all of them, and `namespace pk = picokernel`.\n",
    ]
    for header in HEADERS:
        text = (ROOT / f"include/picokernel/{header}.h").read_text()
        about = re.match(r"(?:// .*\n)+", text)[0].replace("// ", "").strip()
        lines = functions_of_macros(text) + declarations(without_preprocessor(text))
        code = re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()
        pieces += [f"## {header}.h\n", about + "\n", f"```cpp\n{code}\n```\n"]
    return "\n".join(pieces)


def main():
    stale = []
    for name, text in (("python", python_reference()), ("cpp", cpp_reference())):
        path = ROOT / f"docs/reference-{name}.md"
        if "--check" not in sys.argv:
            path.write_text(text)
        elif not path.exists() or path.read_text() != text:
            stale.append(path.name)
    if stale:
        print(f"{', '.join(stale)} is not what the sources say: run scripts/make_reference.py")
    return bool(stale)


if __name__ == "__main__":
    sys.exit(main())
