"""A named segment, of the sharing strategy `file_system`: a file in a session's folder of /dev/shm.

Its memory is reserved when it is made, so that a lack of it is an error then and no signal later. Whoever uses it holds
a shared lock on it through an open file description of its own:

    before it is mapped     a descriptor
    afterwards              the mapping, which keeps the description; so a mapped segment needs no descriptor (one up to
                            Python 3.12, where `mmap` keeps a duplicate)

It is sent by name; `nbmp.memory.manager` says how, and removes the name when nobody needs it. It is not used again: the
next one is another file.
"""

import errno
import math
import mmap
import os
import secrets
import stat
import time

from nbmp import platforms
from nbmp.errors import MissingSegmentError, SharedMemoryError
from nbmp.memory.descriptors import Owned
from nbmp.memory.manager import SEGMENT, message_name
from nbmp.memory.mappings import Key, map_description, mapping
from nbmp.memory.segment import check_room, human
from nbmp.memory.session import NEW, Session, leave_own_session, lock_shared, own_session, sweep_own_session
from nbmp.memory.strategy import NAMED

FREED_SECONDS = 0.1
"""How soon the memory of what was let go of just now is there again: the manager may be about to free it."""
RESERVE_BYTES = 16 << 20
"""Reserved in one go: older kernels begin anew when a signal comes."""
_FULL = (errno.ENOSPC, errno.EDQUOT)
_NOT_OURS = (errno.ENOENT, errno.EACCES, errno.EPERM)


class NamedSegment:
    """A segment that this process holds, by a locked descriptor or, once it was mapped, by its mapping."""

    __slots__ = ("__weakref__", "_control", "_map", "flight", "key", "name", "session", "size")

    fd = NAMED

    def __init__(self, session: Session, name: str, control: Owned) -> None:
        """Take over the descriptor of a file of `session`, locked."""
        self.session = session
        self.name = name
        self.flight: Owned | None = None
        """Of the message that it came in, while that has to keep it."""
        self._control: Owned | None = control
        self._map: mmap.mmap | None = None
        status = os.fstat(control.fileno())
        self.key: Key = (status.st_dev, status.st_ino)
        self.size = status.st_size

    @classmethod
    def create(cls, size: int, purpose: str) -> "NamedSegment":
        """Return a new segment of `size` bytes (at least 1), all zero, reserved.

        Raises
        ------
        SharedMemoryError
            When the machine, the control group or /dev/shm have less memory left.
        """
        check_room(size)
        _check_folder(size)
        try:
            segment = _create(max(1, size), purpose)
        except OSError as error:
            if error.errno in _NOT_OURS:
                leave_own_session()
            elif error.errno in _FULL:
                sweep_own_session()
            else:
                raise
            segment = _create_or_explain(max(1, size), purpose)
        segment.session.ensure_manager()
        return segment

    @classmethod
    def arrive(cls, session: Session, name: str, flight: Owned) -> "NamedSegment":
        """Take a segment out of a message, whose descriptor `flight` is: while that is open the file has its name.

        Raises
        ------
        MissingSegmentError
            When the file is not there.
        """
        if not SEGMENT.fullmatch(name):
            raise MissingSegmentError(f"{name!r} is not the name of a segment")
        try:
            control = session.open(name)
        except OSError as error:
            if error.errno == errno.EMFILE:
                raise
            raise MissingSegmentError(
                f"the memory of an object that was received is gone: the file {session.name}/{name} in /dev/shm was "
                f"removed by somebody ({error.strerror})"
            ) from None
        status = os.fstat(control.fileno())
        if not stat.S_ISREG(status.st_mode) or not status.st_size:
            raise MissingSegmentError(f"{session.name}/{name} in /dev/shm is not the file of a segment")
        locked = lock_shared(control)
        segment = cls(session, name, control)
        if not locked:  # the manager was stopped while it had the lock: the name for the message does in place of it
            segment.flight = flight
        return segment

    @property
    def map(self) -> mmap.mmap:
        """This process' mapping of it, shared; there is one at a time. From then on it is what holds the segment."""
        control = self._control
        if control is not None:
            self._map = mapping(self.key, self.size, control.fileno(), leased=True)
            self._control = None
        assert self._map is not None
        return self._map

    def map_alone(self) -> mmap.mmap:
        """Return a mapping of a segment that nobody else uses; it holds it."""
        return map_description(self.fileno(), self.size)

    def unlink(self) -> None:
        """Remove its name: it is not sent any more, and its memory is free as soon as nobody holds it."""
        self.session.unlink(self.name)

    def fileno(self) -> int:
        """Return its descriptor; only until it is mapped."""
        assert self._control is not None
        return self._control.fileno()

    def link(self, place: int) -> str:
        """Give it a name for a message and return that. If its file was removed by somebody, the receiver is told."""
        name, folder = message_name(self.name, place), self.session.fd
        try:
            os.link(self.name, name, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
        except FileNotFoundError:
            pass
        except OSError as error:
            if error.errno in _FULL:
                raise _full(0) from None
            raise
        return name


def _check_folder(size: int) -> None:
    """Raise `SharedMemoryError` when /dev/shm has no room: before any of it is taken, and before a session is begun."""
    if size <= _room():
        return
    sweep_own_session()
    give_up_at = time.monotonic() + FREED_SECONDS
    while size > _room():
        if time.monotonic() > give_up_at:
            raise _full(size)
        time.sleep(FREED_SECONDS / 20)


def _room() -> float:
    """Return how many bytes /dev/shm has left."""
    status = os.statvfs(platforms.shared_memory_folder())
    return status.f_bavail * status.f_frsize if status.f_blocks else math.inf  # no blocks: mounted without a bound


def _create(size: int, purpose: str) -> NamedSegment:
    session = own_session()
    while True:
        name = f"{os.getpid()}-{purpose}-{secrets.randbits(64):016x}"
        control = session.open(name, NEW)
        if lock_shared(control) and os.fstat(control.fileno()).st_nlink:
            break  # else the manager has taken it for one that nobody uses
    try:
        for start in range(0, size, RESERVE_BYTES):
            os.posix_fallocate(control.fileno(), start, min(RESERVE_BYTES, size - start))
    except OSError:
        session.unlink(name)
        control.close()  # now: what was reserved so far is free again, and counts as such in an error
        raise
    return NamedSegment(session, name, control)


def _create_or_explain(size: int, purpose: str) -> NamedSegment:
    try:
        return _create(size, purpose)
    except OSError as error:
        if error.errno in _FULL:
            raise _full(size) from None
        raise


def _full(size: int) -> SharedMemoryError:
    folder = platforms.shared_memory_folder()
    status = os.statvfs(folder)
    free, total = status.f_bavail * status.f_frsize, status.f_blocks * status.f_frsize
    return SharedMemoryError(
        f"{size} bytes ({human(size)}) of shared memory asked for, but {folder} has only {human(free)} of its "
        f"{human(total)} left (and room for {status.f_favail} files): delete shared arrays that are no longer needed, "
        f"make {folder} larger (docker run --shm-size, mount -o remount,size=), or use the sharing strategy "
        "'file_descriptor', which it does not limit"
    )
