"""What a call costs on each backend: predictions from the machine's ceilings and from what the kernel does."""

from dataclasses import dataclass, replace

import numpy as np

_ALONE_S = 5e-5  # computations below this stay on one thread


@dataclass(frozen=True)
class Work:
    """What one call does, whatever the backend: bytes read and written, and operations as
    (name in the IR, element type, number of elements)."""

    read: int
    written: int
    operations: tuple

    @classmethod
    def of(cls, plan):
        """The work of one plan of the core."""
        read, written, operations = plan.work
        return cls(read, written, tuple(o for o in operations if o[2] > 0))

    @property
    def bytes(self) -> "int":
        """Read and written."""
        return self.read + self.written

    @property
    def count(self) -> "int":
        """Operations on elements."""
        return sum(n for *_, n in self.operations)

    def scaled(self, factor):
        """The same kernel on arrays of `factor` times the size."""
        operations = tuple((name, dtype, n * factor) for name, dtype, n in self.operations)
        return replace(
            self, read=self.read * factor, written=self.written * factor, operations=operations
        )


@dataclass(frozen=True)
class Cost:
    """Predicted seconds of one call on one backend, in parts: `launch`, `transfer` (copies to the backend's
    library and back), `memory`, `compute`; `first_call`, which a new kernel takes once; and `staying`, of a
    call on arrays that are in the backend's library already."""

    launch: float
    transfer: float
    memory: float
    compute: float
    first_call: float
    staying: float

    @property
    def seconds(self) -> "float":
        """Of the whole call: memory and arithmetic overlap."""
        return self.launch + self.transfer + max(self.memory, self.compute)

    @property
    def bound(self) -> "str":
        """What takes most of the time: "launch", "copy", "memory" or "compute"."""
        parts = {
            "launch": self.launch,
            "copy": self.transfer,
            "memory": self.memory,
            "compute": self.compute,
        }
        return max(parts, key=parts.get)

    def chained(self, steps):
        """Seconds of `steps` such calls in a row on arrays that stay with the backend's library."""
        return self.transfer + steps * self.staying


def predicted(work, backends, name, home=None):
    """The Cost of `work` on the backend `name`; `backends`: the Rates of all. Its arrays are in the memory of
    the host, or of the library of the backend `home`."""
    rates = backends[name]
    transfer = rates.transfer(work.bytes) if home is None else 0.0
    if home not in (None, name):  # read in place, results handed over
        transfer = backends[home].transfer(work.written)
    there = rates.own or rates
    staying = there.launch + max(_parts(work, there))
    used = there if home == name else rates
    return Cost(used.launch, transfer, *_parts(work, used), used.first_call, staying)


def _parts(work, rates):
    """Seconds for memory and for arithmetic."""
    if rates.fused:
        memory = rates.memory(work.bytes) - rates.transfer(work.bytes)
        compute = sum(n * rates.operation(name, dtype) for name, dtype, n in work.operations)
        if compute > _ALONE_S:
            compute = max(_ALONE_S, compute / rates.speedup)
    else:  # each operation is a pass over memory
        memory = compute = 0.0
        for name, dtype, n in work.operations:
            step = rates.step(n * np.dtype(_host_type(dtype)).itemsize)
            arithmetic = n * rates.operation(name, dtype)
            memory, compute = memory + step, compute + max(step, arithmetic)
        if not work.operations:
            memory = compute = rates.step(work.written)
        if compute <= memory:
            compute = 0.0
    return max(memory, 0.0), compute


def _host_type(dtype):
    return "float16" if dtype == "bfloat16" else dtype
