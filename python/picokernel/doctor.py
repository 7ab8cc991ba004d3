"""`picokernel doctor`: which backends run here, what the others lack, and the machine."""

import os
import platform
import re
import sys

import picokernel as pk

from . import mlx_bridge, simt
from .ceilings import ceilings
from .report import duration


def report():
    """The report as text."""
    lines = [f"picokernel {pk.__version__}, Python {platform.python_version()}", "", "Backends"]
    for name, why_not in (pk.backends() | simt.backends()).items():
        lines.append(f"  {name:<8}{'live' if not why_not else 'not live: ' + why_not}")
        if name == "mlx" and not why_not:
            lines.append(f"{'':10}bridge for native code inside its graph: {mlx_bridge.state()}")
    lines += ["", "Machine"]
    lines += [f"  {name:<16}{value}" for name, value in machine().items()]
    lines += ["", "Ceilings: a*b+c in float32, measured once and kept with the compiled kernels"]
    return "\n".join([*lines, *_ceilings()])


def _ceilings():
    for name, rates in ceilings().backends.items():
        speeds = {n: speed / 1e9 for n, speed in rates.bandwidth()}
        shown = [(n, speeds[n]) for n in (1 << 16, 1 << 20, max(speeds))]
        words = ", ".join(f"{speed:.3g} GB/s at {n >> 10} KiB" for n, speed in shown)
        peak = f", {rates.peak() / 1e9:.3g} GFLOP/s" if rates.fused else ""
        yield f"  {name:<16}{duration(rates.launch * 1e9)} a call, {words}{peak}"


def machine():
    """Facts of this machine, name -> text, in a fixed order."""
    facts = {
        "system": f"{platform.system()} {platform.release()}, {_libc()}",
        "CPU": cpu_name(),
        "vectors": _vectors(),
        "caches": _caches(),
        "cores": f"{os.cpu_count()} online, {len(_affinity())} allowed to this process",
        "memory": _memory(),
        "cgroup limits": _cgroup(),
        "threads used": str(pk.num_threads()),
    }
    facts["NumPy"] = _numpy()
    return facts


def _read(path):
    try:
        with open(path, encoding="utf-8") as file:
            return file.read().strip()
    except OSError:
        return ""


def _libc():
    name, version = platform.libc_ver()
    return f"{name} {version}" if name else "libc unknown"


def _cpu_info(field):
    found = re.search(rf"^{field}\s*:\s*(.*)$", _read("/proc/cpuinfo"), re.M)
    return found.group(1) if found else ""


def cpu_name():
    """The processor in words."""
    name = _cpu_info("model name") or platform.processor() or platform.machine()
    family, model = _cpu_info("cpu family"), _cpu_info("model")
    return f"{name} (family {family}, model {model})" if family else name


def _vectors():
    flags = set((_cpu_info("flags") or _cpu_info("Features")).split())
    if "avx512f" in flags:
        kinds = sorted(f for f in flags if f.startswith("avx512"))
        return f"512 bits: {' '.join(kinds)}"
    if "avx2" in flags:
        return "256 bits: avx2" + (" fma" if "fma" in flags else "")
    if "asimd" in flags or sys.platform == "darwin":
        return "128 bits: NEON"
    return "unknown"


def _caches():
    folder, seen = "/sys/devices/system/cpu/cpu0/cache", []
    for index in sorted(os.listdir(folder)) if os.path.isdir(folder) else []:
        level, kind, size = (_read(f"{folder}/{index}/{f}") for f in ("level", "type", "size"))
        if level and kind != "Instruction":
            seen.append(f"L{level} {size}")
    return ", ".join(seen) or "unknown"


def _affinity():
    return os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else range(os.cpu_count())


def _memory():
    total = re.search(r"MemTotal:\s*(\d+) kB", _read("/proc/meminfo"))
    free = re.search(r"MemAvailable:\s*(\d+) kB", _read("/proc/meminfo"))
    if not (total and free):
        return "unknown"
    gib = [int(m.group(1)) / 2**20 for m in (total, free)]
    huge = re.search(r"\[(\w+)\]", _read("/sys/kernel/mm/transparent_hugepage/enabled"))
    pages = f", huge pages: {huge.group(1)}" if huge else ""
    return f"{gib[0]:.1f} GiB, {gib[1]:.1f} available{pages}"


def _cgroup():
    cpu = _read("/sys/fs/cgroup/cpu.max") or _read("/sys/fs/cgroup/cpu/cpu.cfs_quota_us")
    memory = _read("/sys/fs/cgroup/memory.max")
    limits = []
    if cpu and not cpu.startswith(("max", "-1")):
        quota, period = ([*cpu.split(), "100000"])[:2]
        limits.append(f"{int(quota) / int(period):g} CPUs")
    if memory.isdigit():
        limits.append(f"{int(memory) / 2**30:.1f} GiB")
    return ", ".join(limits) or "none"


def _numpy():
    import numpy as np

    build = np.show_config(mode="dicts").get("Build Dependencies", {}).get("blas", {})
    core = _blas_core()
    return f"{np.__version__}, BLAS {build.get('name', 'unknown')} {build.get('version', '')}{core}"


def _blas_core():
    """The kernels that NumPy's own OpenBLAS chose: variables can pin it to older ones."""
    import ctypes
    import glob

    import numpy as np

    libraries = glob.glob(os.path.join(os.path.dirname(np.__file__), "..", "numpy.libs", "*blas*"))
    for path in libraries:
        library = ctypes.CDLL(path)
        for name in ("scipy_openblas_get_corename64_", "openblas_get_corename64_"):
            function = getattr(library, name, None)
            if function is not None:
                function.restype = ctypes.c_char_p
                return f", its core {function().decode()}"
    return ""
