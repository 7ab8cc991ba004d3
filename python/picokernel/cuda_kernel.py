"""Printed CUDA kernels on arrays of MLX: one kernel where MLX's own operations are several."""

import functools
import hashlib
import math
import re

import numpy as np

# mx.compile makes one kernel of expressions up to so many levels deep (max_compile_depth in MLX's
# compile.cpp), and several of deeper ones. On an H200, 16 times x*b + c on 1e8 elements take 1.1 ms so,
# and 0.39 ms as one kernel of ours; up to that depth both are as fast on large arrays, and a call of
# mx.compile's is some 20 us shorter.
FUSED_LEVELS = 11
BLOCK = 256  # threads
PER_THREAD = 4  # elements: enough loads in flight
MOST_THREADS = 1 << 28  # of a grid along x

_TYPE = re.compile(r"(.*?\*?)(PK_RESTRICT )?\w+$")


def fused_levels():
    """How deep expressions are left to mx.compile; -1: all, as this MLX runs no CUDA kernels."""
    import mlx.core as mx

    try:
        mx.fast.cuda_kernel(name="probe", input_names=["a"], output_names=["r"], source="")
    except RuntimeError:
        return -1
    return FUSED_LEVELS


class CudaKernel:
    """What the backend cuda printed as `entry`, run by MLX; lazy like MLX's operations. `numbers`:
    for each argument the dtype of a number, None for an array. `plain` is the same function by MLX's
    own operations, which gradients and vmap go through; `fused` what other devices run."""

    def __init__(self, text, entry, numbers, results, plain, fused):
        import mlx.core as mx

        self._numbers, self._plain, self._fused = numbers, plain, fused
        inputs, outputs = [f"a{i}" for i in range(numbers.count(None))], []
        pointers, words = iter(inputs), 0
        call = []
        for parameter in re.search(rf" {entry}\((.*)\) {{", text)[1].split(", "):
            kind = _TYPE.match(parameter)[1].strip()
            if not kind.endswith("*"):
                call.append(f"*(const {kind} *)(w + {words})")
                words += 1
                continue
            if (name := next(pointers, None)) is None:
                name = f"r{len(outputs)}"
                outputs.append(name)
            call.append(f"({kind}){name}")
        assert len(outputs) == results
        # MLX keeps compiled kernels by their names.
        name = f"{entry}_{hashlib.sha256(text.encode()).hexdigest()[:16]}"
        self._kernel = mx.fast.cuda_kernel(
            name=name,
            input_names=["w", *inputs],
            output_names=outputs,
            header="#define PK_FUNCTION __device__\n#define PK_RESTRICT __restrict__\n" + text,
            source=f"{entry}({', '.join(call)});",
        )
        self._rows = "= blockIdx.y *" in text  # else one loop over all elements

    def bound(self, sizes, shapes, dtypes):
        """The function of a call's arguments, of results with these shapes and names of dtypes.
        `sizes`: the values of the last parameters. It gives a tuple."""
        import mlx.core as mx

        inner = shapes[0][-1] if self._rows else math.prod(shapes[0])
        outer = shapes[0][-2] if self._rows else 1
        width = -(-inner // PER_THREAD)
        x = min(BLOCK, 1 << (width - 1).bit_length()) if self._rows else BLOCK
        how = {
            "output_shapes": shapes,
            "output_dtypes": [getattr(mx, "bool_" if t == "bool" else t) for t in dtypes],
            "grid": (min(width, MOST_THREADS), min(outer, 65535), 1),
            "threadgroup": (x, BLOCK // x if self._rows else 1, 1),
        }
        tail = np.array(sizes, np.int64).tobytes()
        kinds = self._numbers
        known = functools.lru_cache(64)(functools.partial(self._with_numbers, how, tail))

        def function(*arguments):
            if mx.default_device().type != mx.gpu:
                return self._fused(*arguments)
            numbers = tuple(x for x, kind in zip(arguments, kinds, strict=True) if kind)
            arrays = (x for x, kind in zip(arguments, kinds, strict=True) if not kind)
            return known(numbers)(*arrays)

        return function

    def _with_numbers(self, how, tail, numbers):
        """The function of arrays alone."""
        import mlx.core as mx

        kinds = [kind for kind in self._numbers if kind]
        words = b"".join(
            np.array(x, kind).tobytes().ljust(8, b"\0")
            for x, kind in zip(numbers, kinds, strict=True)
        )
        w = mx.array(np.frombuffer(words + tail or bytes(8), np.uint64))

        def plain(*arrays):
            rest, values = iter(arrays), iter(numbers)
            return self._plain(*(next(values if kind else rest) for kind in self._numbers))

        return _transformable(
            lambda *arrays: tuple(self._kernel(inputs=[w, *arrays], **how)), plain
        )


def _transformable(function, plain):
    """`function` of arrays, which MLX differentiates and maps through `plain`."""
    import mlx.core as mx

    made = mx.custom_function(function)

    def several(x):
        return list(x) if isinstance(x, (tuple, list)) else [x]

    @made.vjp
    def vjp(primals, cotangents, _):
        found = mx.vjp(plain, several(primals), several(cotangents))[1]
        return tuple(found) if isinstance(primals, tuple) else found[0]

    @made.jvp
    def jvp(primals, tangents):
        primals, tangents = several(primals), several(tangents)
        all_of_them = [
            mx.zeros_like(p) if t is None else t for p, t in zip(primals, tangents, strict=True)
        ]
        return tuple(mx.jvp(plain, primals, all_of_them)[1])

    @made.vmap
    def vmap(arrays, axes):
        axes = tuple(axes) if isinstance(axes, (tuple, list)) else axes
        results = mx.vmap(plain, in_axes=axes)(*several(arrays))
        return results, tuple(0 for _ in results)

    return made
