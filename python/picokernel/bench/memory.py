"""Sizes that fit into this machine's memory."""

import os
import re

_SHARE = 0.7  # of what is available


def _read(path):
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except OSError:
        return ""


def available():
    """Bytes that a program can have: what the system says, within the cgroup's limit."""
    found = re.search(r"MemAvailable:\s*(\d+) kB", _read("/proc/meminfo"))
    if found:
        free = int(found[1]) * 1024
    else:
        free = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
    limit, used = (_read(f"/sys/fs/cgroup/memory.{name}").strip() for name in ("max", "current"))
    if limit.isdigit() and used.isdigit():
        free = min(free, int(limit) - int(used))
    return max(free, 0)


def fitting(n, bytes_per_element, free):
    """The largest of n and 1, 2 or 5 times a power of ten below it that needs no more than a share
    of `free` bytes; 1 at least."""
    if n * bytes_per_element <= _SHARE * free:
        return n
    power = 10 ** len(str(n))
    while power > 1:
        power //= 10
        for factor in (5, 2, 1):
            size = factor * power
            if size < n and size * bytes_per_element <= _SHARE * free:
                return size
    return 1


def fit_sizes(sizes, bytes_per_element):
    """The sizes that fit, smaller ones in the place of others, and a sentence if there are such."""
    free = available()
    found = [fitting(n, bytes_per_element, free) for n in sizes]
    if found == list(sizes):
        return found, ""
    need = max(sizes) * bytes_per_element / 2**30
    return list(dict.fromkeys(found)), (
        f"Not at n = {max(sizes):,}: that takes {need:.1f} GiB beside each other, "
        f"and {free / 2**30:.1f} GiB are free."
    )
