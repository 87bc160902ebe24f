"""Limits of the control group that this process runs in, version 1 and 2."""

import os
from functools import cache
from math import ceil

from nbmp.platforms.files import content

ROOT = "/sys/fs/cgroup"
UNLIMITED = 1 << 60


@cache
def _folders(controller: str) -> tuple[str, ...]:
    """Return the group's folder of this controller and its parents, innermost first: each may set a limit."""
    lines = _read("/proc/self/cgroup").splitlines()
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers == "" and os.path.exists(f"{ROOT}/cgroup.controllers"):
            base = ROOT
        elif controller in controllers.split(","):
            base = f"{ROOT}/{controller}"
        else:
            continue
        parts = path.strip("/").split("/")
        folders = ["/".join((base, *parts[:count])) for count in range(len(parts), 0, -1)] if parts != [""] else []
        # inside a container the path may be the host's: then only the root of the mount is there
        return (*(folder for folder in folders if os.path.isdir(folder)), base)
    return ()


def _read(file: str) -> str:
    return content(file).decode(errors="replace")


def _number(file: str) -> int | None:
    words = _read(file).split()
    return int(words[0]) if words and words[0].lstrip("-").isdigit() else None


def cgroup_cpu_limit() -> int | None:
    """Return the CPU quota in whole cores, rounded up; None without one."""
    limits = []
    for folder in _folders("cpu"):
        words = _read(f"{folder}/cpu.max").split()  # version 2
        if not words:
            words = [_read(f"{folder}/cpu.cfs_{name}_us").strip() for name in ("quota", "period")]
        quota, period = words
        if quota.isdigit() and period.isdigit():
            limits.append(ceil(int(quota) / int(period)))
    return min(limits, default=None)


def cgroup_memory_left() -> int | None:
    """Return how many bytes the group may still take, clean page cache counted as free; None without a limit."""
    found = cgroup_memory()
    return None if found is None else max(0, found[0] - found[1])


def cgroup_memory() -> tuple[int, int] | None:
    """Return limit and use in bytes, clean page cache not counted, of the group or parent with the least left."""
    found = []
    for folder in _folders("memory"):
        limit = _number(f"{folder}/memory.max") or _number(f"{folder}/memory.limit_in_bytes")
        used = _number(f"{folder}/memory.current") or _number(f"{folder}/memory.usage_in_bytes")
        if limit is not None and used is not None and limit < UNLIMITED:
            found.append((limit, used - _inactive_file(folder)))
    return min(found, key=lambda pair: pair[0] - pair[1], default=None)


def cgroup_oom_kills() -> int:
    """Return how many processes of the group the out-of-memory killer has ended so far."""
    for folder in _folders("memory"):
        for name in ("memory.events", "memory.oom_control"):
            value = _field(f"{folder}/{name}", "oom_kill")
            if value is not None:
                return value
    return 0


def _inactive_file(folder: str) -> int:
    return _field(f"{folder}/memory.stat", "inactive_file") or 0


def _field(file: str, name: str) -> int | None:
    for line in _read(file).splitlines():
        key, _, value = line.partition(" ")
        if key == name:
            return int(value)
    return None
