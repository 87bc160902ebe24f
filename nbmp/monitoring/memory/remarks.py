"""What a person should know about the memory there is: said before something fails."""

import os
import resource
from collections.abc import Iterator, Sequence
from contextlib import suppress

import psutil

from nbmp.memory.leftovers import Leftover
from nbmp.memory.strategy import FILE_SYSTEM
from nbmp.monitoring.memory.usage import MemoryUsage
from nbmp.monitoring.snapshots import size

SHORT = 0.1
"""Memory is short when less than this part of it is left."""
SMALL_SHM = 64 << 20
"""The size of /dev/shm in a container unless told otherwise."""
MANY_FILES = 0.8


def remarks(usage: MemoryUsage, strategy: str, left: Sequence[Leftover]) -> Iterator[str]:
    """Return the remarks, the most urgent first."""
    yield from _about_memory(usage)
    yield from _about_dev_shm(usage, strategy)
    yield from _about_files()
    if any(one.bytes for one in left):
        many = f"{len(left)} sessions" if len(left) > 1 else "a session"
        taken = size(sum(one.bytes for one in left))
        yield f"{taken} in /dev/shm are left of {many} that died: %mpshm --clean removes them"
    if usage.hidden:
        pids = " ".join(map(str, usage.hidden))
        yield f"what pid{'s' if len(usage.hidden) > 1 else ''} {pids} has cannot be seen: another user's process"


def _about_memory(usage: MemoryUsage) -> Iterator[str]:
    group = usage.control_group
    if group is not None and group.free < SHORT * group.limit and usage.available == group.free:
        yield (
            f"memory is short: {size(group.free)} of the {size(group.limit)} of this container are left; the system "
            "ends a process that takes more"
        )
    elif usage.available is not None and usage.available < SHORT * machine_memory():
        yield f"memory is short: this machine has {size(usage.available)} left; the system ends who takes more"


def _about_dev_shm(usage: MemoryUsage, strategy: str) -> Iterator[str]:
    room = usage.dev_shm
    if room is None or (strategy != FILE_SYSTEM and not usage.bytes_of(strategy=FILE_SYSTEM)):
        return
    if room.free < SHORT * room.limit:
        state = f"is full: {size(room.free)} of {size(room.limit)} are left"
    elif room.limit <= SMALL_SHM:
        state = f"has only {size(room.limit)}"
    else:
        return
    yield (
        f"/dev/shm {state}, and file_system arrays live there: make it larger (docker run --shm-size), or "
        'nbmp.set_sharing_strategy("file_descriptor")'
    )


def _about_files() -> Iterator[str]:
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    with suppress(OSError):
        count = len(os.listdir("/proc/self/fd"))
        if count > MANY_FILES * hard:
            yield f"{count} files are open, and {hard} may be: each shared array above 64 kB takes one or two"


def machine_memory() -> int:
    """Return how many bytes of memory this machine has."""
    return int(psutil.virtual_memory().total)
