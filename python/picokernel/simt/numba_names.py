"""What Numba's CUDA target calls other names, or knows and kernels here have no need of."""

import types

from ..errors import LaunchError

# Options of Numba's decorator that choose how a GPU's compiler works, and nothing that a kernel means.
_WITHOUT_MEANING = frozenset(
    [
        "abi",
        "abi_info",
        "cache",
        "cc",
        "chip",
        "extensions",
        "forceinline",
        "inline",
        "launch_bounds",
        "lineinfo",
        "lto",
        "max_registers",
        "nopython",
        "opt",
    ]
)


def read_options(options, check):
    """Whether to check, after Numba's options. Raises LaunchError for one that nobody knows."""
    for name, value in options.items():
        if name == "debug":
            check = check or bool(value)
        elif name == "link":
            if value:
                raise LaunchError(
                    f"link={value!r}: kernels cannot be linked with other code\n"
                    "  hint: write what it does with @simt.jit(device=True)"
                )
        elif name not in _WITHOUT_MEANING:
            raise LaunchError(
                f"@simt.jit takes no option `{name}`\n"
                "  its own: device, backend, fastmath, contract, check, seed\n"
                f"  Numba's, without a meaning here: {', '.join(sorted(_WITHOUT_MEANING))}"
            )
    return check


class Dispatcher:
    """Members of Numba's dispatchers."""

    extensions = ()

    @property
    def py_func(self) -> types.FunctionType:
        """The function that was decorated."""
        return self.python_function

    @property
    def signatures(self) -> list:
        """For each declared signature the types of its arguments."""
        return [s.args for s in self._signatures]

    def specialize(self, *args):
        """The kernel: it is compiled for each kind of arguments at the first launch with them."""
        return self

    def compile(self, signature):
        """Compiles for a signature; a launch would do so."""
        self._check_signature(signature)
        return self

    def inspect_llvm(self, signature=None):
        """The IR, where Numba has LLVM's: of one signature, or a dict by signature."""
        return self._inspected(signature, None)

    def inspect_asm(self, signature=None):
        """The loops that native code is made of, where Numba has PTX: as `inspect_llvm`."""
        return self._inspected(signature, "cpu")

    def inspect_types(self, file=None):
        """Prints the IR, with the types of all values."""
        for text in self.inspect_llvm().values():
            print(text, file=file)

    def _inspected(self, signature, backend):
        if signature is not None:
            return self._text_for(signature, backend)
        return {s.args: self._text_for(s, backend) for s in self._signatures}
