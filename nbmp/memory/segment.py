"""A segment: a piece of memory that several processes map.

It is an anonymous memory file, so it has no name that could be left behind: it is gone when the last process that
holds a descriptor or a mapping of it is gone, however that process ended. Its size is sealed, so no access inside it
can fault.
"""

import mmap
import os

from nbmp import platforms
from nbmp.errors import SharedMemoryError

Key = tuple[int, int]
"""Device and inode: names a segment in every process as long as somebody holds it."""

UNCHECKED_BYTES = 1 << 20
"""Up to this size nobody asks how much memory is left."""


class Segment:
    """A segment that this process holds. Closes its descriptor and its mapping when nothing refers to it any more."""

    __slots__ = ("__weakref__", "_map", "_owner", "fd", "key", "size")

    def __init__(self, fd: int) -> None:
        """Take over the descriptor `fd` of a sealed memory file."""
        self.fd = fd
        self._owner = platforms.owner(fd)
        self._map: mmap.mmap | None = None
        status = os.fstat(fd)
        self.key: Key = (status.st_dev, status.st_ino)
        self.size = status.st_size

    @classmethod
    def create(cls, size: int, *, sealed: bool = True) -> "Segment":
        """Return a new segment of `size` bytes (at least 1), all zero; the caller seals it unless `sealed`.

        Raises
        ------
        SharedMemoryError
            When the machine or the control group has less memory left. Nothing is reserved: pages are taken as they are
            written, so this is a check at this moment and no promise.
        """
        _check_room(size)
        fd = platforms.anonymous_file("nbmp")
        try:
            os.ftruncate(fd, max(1, size))
            if sealed:
                platforms.seal(fd)
        except BaseException:
            os.close(fd)
            raise
        return cls(fd)

    @property
    def map(self) -> mmap.mmap:
        """The shared mapping of the whole segment, made at first use. What keeps it alive is whoever refers to it."""
        if self._map is None:
            self._map = mmap.mmap(self.fd, self.size)
        return self._map


def _check_room(size: int) -> None:
    """Raise `SharedMemoryError` if `size` bytes are more than the machine and the control group have left."""
    left = platforms.available_memory() if size > UNCHECKED_BYTES else None
    if left is not None and size > left:
        raise SharedMemoryError(
            f"{size} bytes ({_human(size)}) of shared memory asked for, but only {_human(left)} are left for this "
            "process (machine and control group together): delete arrays that are no longer needed, use a smaller "
            "dtype, or raise the memory limit"
        )


def _human(size: float) -> str:
    for unit in ("bytes", "kB", "MB", "GB"):
        if size < 1000 or unit == "GB":
            break
        size /= 1000
    return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"
