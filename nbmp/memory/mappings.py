"""Mappings of segments in this process: one for each segment.

The mapping of a shared array's segment lives as long as the array. That of a message's segment is kept a while longer:
the sender uses the segment again, and a receiver that finds its pages mapped already pays no more than one warm copy
for the next message. What is kept holds no lease, so it does not keep the segment from being used again; but it keeps
its memory, so it is bounded in bytes, in number and in time.
"""

import errno
import mmap
import os
import sys
import threading
import time
from collections import OrderedDict

from nbmp.errors import SharedMemoryError
from nbmp.memory.descriptors import reopened
from nbmp.memory.room import kept_count, with_room
from nbmp.memory.weakly import WeakTable

Key = tuple[int, int]
"""Device and inode: names a segment in every process as long as somebody holds it."""

KEPT_BYTES = 1 << 30
KEPT_COUNT = 128
IDLE_SECONDS = 5.0

_alive: WeakTable[mmap.mmap] = WeakTable()
"""Every mapping of this process that anything uses."""
_kept: "OrderedDict[Key, tuple[mmap.mmap, float]]" = OrderedDict()
"""Those that are kept alive here, the latest used last, with the time of that use."""
_lock = threading.RLock()


def mapping(key: Key, size: int, fd: int, *, leased: bool = False) -> mmap.mmap:
    """Return the mapping of the segment behind `fd`, made now if there is none.

    With `leased` it is made of that description itself: the mapping holds its lease, also when `fd` is closed.
    """
    with _lock:
        found = _alive.get(key)
        if found is None:
            found = _alive.put(key, (map_description if leased else _map)(fd, size))
        return found


def kept_mapping(key: Key, size: int, fd: int) -> mmap.mmap:
    """As `mapping`, and keep it for the next time."""
    with _lock:
        found = mapping(key, size, fd)
        _kept[key] = found, time.monotonic()
        _kept.move_to_end(key)
        most = kept_count(KEPT_COUNT)
        while len(_kept) > 1 and (len(_kept) > most or kept_bytes() > KEPT_BYTES):
            _kept.popitem(last=False)
        return found


def trim(idle: float = 0.0) -> int:
    """Keep no mapping that was not asked for during the last `idle` seconds; return how many are still kept."""
    with _lock:
        latest = time.monotonic() - idle
        for key in [key for key, (_, used) in _kept.items() if used <= latest]:
            del _kept[key]
        return len(_kept)


def is_used() -> bool:
    """Return whether any mapping is kept."""
    return bool(_kept)


def kept_bytes() -> int:
    """Return the size of all mappings that are kept."""
    return sum([len(kept) for kept, _ in _kept.values()])  # not counted along: an interrupt could make it wrong


def _forget() -> None:
    """In a forked child: keep nothing; what arrays use stays. Another thread may have held the lock."""
    global _lock
    _lock = threading.RLock()
    _kept.clear()


os.register_at_fork(after_in_child=_forget)


def _map(fd: int, size: int) -> mmap.mmap:
    """Map through a description of its own: a mapping of a leased one would keep the lease as long as the mapping."""
    description = reopened(fd)
    return map_description(description.fileno(), size)


def map_description(fd: int, size: int) -> mmap.mmap:
    """Map an open file description, which the mapping keeps.

    Raises
    ------
    OpenFilesError, SharedMemoryError
        When there is no descriptor, no address space or no mapping left for it.
    """
    try:
        if sys.version_info >= (3, 13):
            return mmap.mmap(fd, size, trackfd=False)
        return with_room(mmap.mmap, fd, size)
    except OSError as error:
        if error.errno != errno.ENOMEM:
            raise
        raise SharedMemoryError(
            f"{size} bytes of shared memory cannot be mapped: this process has reached its limit of address space "
            "(ulimit -v) or of mappings (vm.max_map_count); drop arrays, or raise the limit"
        ) from None
