"""A segment: a piece of memory that several processes map. Of the default sharing strategy, `file_descriptor`.

It is an anonymous memory file, so it has no name that could be left behind: it is gone when the last process that holds
a descriptor or a mapping of it is gone, however that process ended. Its size is sealed, so no access inside it faults.

A segment that is used again and again, for messages, has leases besides:

    owner       control description      holds no lock; asks "is it free?", then uses the segment again
    everybody   leased description       holds a shared flock: a message under way, an array here or in a forked child
                mapping                  from a third description, since a mapping keeps its description open

A lease is an open file description of its own. It travels in a message (SCM_RIGHTS) and is inherited by a fork; it ends
when its last descriptor is closed, which the kernel does for a process that is killed and for a message that is thrown
away unread. So there is no counter that a death could leave wrong.
"""

import contextlib
import fcntl
import mmap
import os

from nbmp import platforms
from nbmp.errors import SharedMemoryError
from nbmp.memory.descriptors import Owned, made, reopened
from nbmp.memory.mappings import Key, mapping

SMALL_BYTES = 1 << 20
UNCHECKED_BYTES = 16 << 20
"""So much of small segments is made before somebody asks how much memory is left: asking costs more than they do."""


class Segment:
    """A segment that this process holds, by a descriptor that is closed with it."""

    __slots__ = ("__weakref__", "control", "fd", "is_fresh", "key", "size")

    def __init__(self, control: Owned) -> None:
        """Take over the descriptor of a memory file."""
        self.control = control
        self.fd = control.fileno()
        status = os.fstat(self.fd)
        self.key: Key = (status.st_dev, status.st_ino)
        self.size = status.st_size
        self.is_fresh = False
        """Whether nothing was ever written to it: all zero, and no page taken yet."""

    @classmethod
    def create(cls, size: int, purpose: str = "array", *, sealed: bool = True) -> "Segment":
        """Return a new segment of `size` bytes (at least 1), all zero; the caller seals it unless `sealed`.

        This process and the purpose, a word, stand in its name: `nbmp.memory_usage` shows them.

        Raises
        ------
        SharedMemoryError
            When the machine or the control group has less memory left. Nothing is reserved: pages are taken as they are
            written, so this is a check at this moment and no promise.
        """
        check_room(size)
        control = made(platforms.anonymous_file, f"nbmp-{os.getpid()}-{purpose}")
        os.ftruncate(control.fileno(), max(1, size))
        if sealed:
            platforms.seal(control.fileno())
        segment = cls(control)
        segment.is_fresh = True
        return segment

    @property
    def map(self) -> mmap.mmap:
        """This process' mapping of it, shared; there is one at a time."""
        return mapping(self.key, self.size, self.fd)

    def lend(self) -> Owned:
        """Return a new lease."""
        lease = reopened(self.fd)
        fcntl.flock(lease.fileno(), fcntl.LOCK_SH)
        return lease

    def is_free(self) -> bool:
        """Return whether no lease is left, in any process."""
        try:
            fcntl.flock(self.fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        fcntl.flock(self.fd, fcntl.LOCK_UN)
        return True

    def give_back_pages(self) -> None:
        """Free the memory of a segment that nobody will read again, although others may still have it mapped."""
        with contextlib.suppress(OSError, MemoryError):  # then it is freed with the last mapping
            self.map.madvise(mmap.MADV_REMOVE)


_unchecked = 0


def check_room(size: int) -> None:
    """Raise `SharedMemoryError` if `size` bytes are more than the machine and the control group have left."""
    global _unchecked
    _unchecked += size
    if size <= SMALL_BYTES and _unchecked <= UNCHECKED_BYTES:
        return
    _unchecked = 0
    left = platforms.available_memory()
    if left is not None and size > left:
        raise SharedMemoryError(
            f"{size} bytes ({human(size)}) of shared memory asked for, but only {human(left)} are left for this "
            "process (machine and control group together): delete arrays that are no longer needed, use a smaller "
            "dtype, or raise the memory limit"
        )


def human(size: float) -> str:
    """Return a number of bytes as people say it."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if size < 1000 or unit == "GB":
            break
        size /= 1000
    return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"
