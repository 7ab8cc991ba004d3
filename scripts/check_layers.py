"""Checks that includes follow the layers of docs/architecture.md, and the limits on size.

Usage: check_layers.py [ROOT]. Exits 1 and prints a line per finding if something is wrong.
"""

import argparse
import pathlib
import re
import sys

# Folder -> the folders that it may include beside itself. The longest matching folder is a file's.
LAYERS = {
    "include": [],
    "src/support": ["include"],
    "src/trace": ["include", "src/support"],
    "src/ir": ["include", "src/support"],
    "src/frontend": ["include", "src/support", "src/ir"],
    "src/runtime": ["include", "src/support", "src/trace"],
    "src/passes": ["include", "src/support", "src/ir"],
    "src/backend": ["include", "src/support", "src/trace", "src/ir", "src/runtime", "src/passes"],
    "src/driver": [
        *("include", "src/support", "src/trace", "src/ir", "src/frontend", "src/runtime"),
        *("src/passes", "src/backend"),
    ],
    "tools": ["include", "src"],
    "python/src": ["include", "src", "python/picokernel/bridge"],
}
# Below src/backend/: folders of text printing that every backend may include. Other folders are
# siblings, which only BACKEND_LIST includes.
SHARED_BACKENDS = {"py_like", "c_like"}
BACKEND_LIST = "src/driver/backends.cpp"

# Headers of others -> the only folder that may include them.
VENDORS = {
    r"llvm(-c)?/": "src/backend/cpu",
    r"(cuda|nvrtc|nvml|cupti|cub/|thrust/)": "src/backend/cuda",
    r"(Metal|MetalKit|Foundation|QuartzCore)/": "src/backend/metal",
    r"(CL|OpenCL)/": "src/backend/opencl",
    r"mlx/": "python/picokernel/bridge",
    r"(Python\.h|numpy/|nanobind/)": "python/src",
    r"CLI/": "tools/picoc",
    r"xxhash\.h": "src/support",
    r"nlohmann/": "src/trace",
}

# Public headers for programs that have MLX; no other one includes them.
MLX_HEADERS = {"include/picokernel/mlx.h", "include/picokernel/mlx_primitive.h"}

MAX_SRC_LINES = 36_000  # without tables that tools/fit writes
GENERATED = re.compile(r"_coefficients\.h$")
MAX_PYTHON_SHARE = 0.20
MAX_FILE_LINES = 800
MAX_PASS_LINES = 300

CXX_SUFFIXES = {".h", ".cpp", ".def", ".mm"}
PRODUCT = ["include", "src", "tools", "python"]
OTHER = ["tests", "bench", "examples", "scripts"]
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


def files_under(root: pathlib.Path, folders: list[str], suffixes: set[str]) -> list[pathlib.Path]:
    found = (p for folder in folders for p in (root / folder).rglob("*") if p.suffix in suffixes)
    return sorted(p for p in found if p.is_file())


def line_count(path: pathlib.Path) -> int:
    return path.read_bytes().count(b"\n")


def within(path: str, folder: str) -> bool:
    return path.startswith(folder + "/")


def layer_of(path: str) -> str | None:
    return max((layer for layer in LAYERS if within(path, layer)), key=len, default=None)


def backend_of(path: str) -> str | None:
    """The folder below src/backend/ that a file lies in, if any."""
    parts = path.split("/")
    return parts[2] if path.startswith("src/backend/") and len(parts) > 3 else None


def resolve(root: pathlib.Path, path: str, name: str) -> str | None:
    """The file of this tree that `name`, included by `path`, means."""
    for base in (pathlib.PurePath(path).parent, "include", "src"):
        if (root / base / name).is_file():
            return (root / base / name).resolve().relative_to(root).as_posix()
    return None


def check_include(root: pathlib.Path, path: str, quote: str, name: str) -> str | None:
    """What is wrong with one include, or None."""
    for pattern, home in VENDORS.items():
        if re.match(pattern, name):
            if within(path, home) or (pattern == r"mlx/" and path in MLX_HEADERS):
                return None
            return f"<{name}> belongs to {home}/ alone"
    target = resolve(root, path, name)
    if target is None:
        return f'"{name}" is no file of this tree' if quote == '"' else None
    if target in MLX_HEADERS and path not in MLX_HEADERS:
        return f"{target} is for programs that have MLX"
    layer, backend, target_backend = layer_of(path), backend_of(path), backend_of(target)
    if layer is None:
        return f"{path} lies in no layer"
    if not any(within(target, allowed) for allowed in [layer, *LAYERS[layer]]):
        return f"{layer}/ must not include {target}"
    if target_backend in (None, backend):
        return None
    # picoc compares every backend with the interpreter.
    if within(path, "tools") and target_backend == "ref":
        return None
    if path == BACKEND_LIST or (backend and target_backend in SHARED_BACKENDS):
        return None
    if backend:
        return f"backend {backend} must not include its sibling {target_backend}"
    return f"{target} is a backend's: only {BACKEND_LIST} includes those"


def check_includes(root: pathlib.Path) -> list[str]:
    errors = []
    for file in files_under(root, ["include", "src", "tools", "python/src"], CXX_SUFFIXES):
        path = file.relative_to(root).as_posix()
        for number, line in enumerate(file.read_text().splitlines(), 1):
            match = INCLUDE.match(line)
            if match and (error := check_include(root, path, match[1], match[2])):
                errors.append(f"{path}:{number}: {error}")
    return errors


def check_sizes(root: pathlib.Path) -> list[str]:
    errors = []
    written = [p for p in files_under(root, ["src"], CXX_SUFFIXES) if not GENERATED.search(p.name)]
    src = sum(map(line_count, written))
    product = sum(map(line_count, files_under(root, PRODUCT, CXX_SUFFIXES | {".py"})))
    python = sum(map(line_count, files_under(root, ["python"], {".py"})))
    share = python / product if product else 0.0
    print(f"src/: {src} lines (ceiling {MAX_SRC_LINES})")
    print(
        f"Python: {python} of {product} product lines, {share:.1%} (ceiling {MAX_PYTHON_SHARE:.0%})"
    )
    if src > MAX_SRC_LINES:
        errors.append(f"src/ has {src} lines, over {MAX_SRC_LINES}")
    if share > MAX_PYTHON_SHARE:
        errors.append(f"Python is {share:.1%} of the product, over {MAX_PYTHON_SHARE:.0%}")
    for file in files_under(root, [*PRODUCT, *OTHER], CXX_SUFFIXES | {".py", ".sh"}):
        path, lines = file.relative_to(root).as_posix(), line_count(file)
        ceiling = MAX_PASS_LINES if within(path, "src/passes") else MAX_FILE_LINES
        if lines > ceiling:
            errors.append(f"{path}: {lines} lines, over {ceiling}")
    return errors


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    here = pathlib.Path(__file__).resolve().parent.parent
    parser.add_argument("root", nargs="?", type=pathlib.Path, default=here)
    root = parser.parse_args().root.resolve()
    errors = check_includes(root) + check_sizes(root)
    print("\n".join(errors) if errors else "layers: in order")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
