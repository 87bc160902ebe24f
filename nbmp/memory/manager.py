"""The manager: the daemon that takes away named segments which nobody needs any more. Standard library only.

It has no state and no socket. All there is to know stands in the session's folder and in the kernel's locks on it:

    /dev/shm/nbmp-<uid>-<random>/       shared lock (flock) on the folder:   a process that belongs to the session
        <pid>-<purpose>-<random>        shared lock (flock) on the file:     a segment that somebody holds
        <the same>.<place>              a second name of that file:          a message that carries it
        flight                          lock on byte <place> (OFD):          that message is under way, or being read
        manager                         lock on byte 0 (OFD):                the manager is alive

A lock ends with the last descriptor or mapping of its open file description, which the kernel sees to for a process
that is killed and for a message that is thrown away. So the manager only looks, every half second:

1. The name for a message is removed when its byte in `flight` is not locked: the message was read or is gone.
2. The name of a segment is removed when the file has no other name and can be locked exclusively: nobody holds it, and
   while the manager has it nobody can begin to. In that order, since only a holder gives it a name for a message.
3. When the folder can be locked exclusively and nothing is under way, the session is over: all of it is removed.

A killed manager is replaced by the next process that makes a segment, and a second one ends at once. A manager that is
stopped in the middle of a look blocks nobody: whoever meets its lock waits for a bounded time and goes on without.
What sessions have left behind that were killed, manager and all, is removed when a manager starts.

    python -I -S manager.py /dev/shm/nbmp-<uid>-<random>      starts it, as nobody's child, and returns
"""

import contextlib
import fcntl
import os
import re
import select
import struct
import sys
import time
from collections.abc import Iterator

LOOK_SECONDS = 0.5
SHARE = 20
"""At most one part in so many of its time is spent looking."""

PREFIX = "nbmp-"
FLIGHT, SIGN = "flight", "manager"
SEGMENT = re.compile(r"\d+-\w+-[0-9a-f]{16}")
MESSAGE = re.compile(rf"{SEGMENT.pattern}\.([0-9a-f]{{16}})")

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_LOCK = "hhqqi"  # struct flock: kind, whence, start, length, pid


def message_name(segment: str, place: int) -> str:
    """Return the name that a segment has for a message."""
    return f"{segment}.{place:016x}"


def lock_byte(fd: int, place: int) -> None:
    """Lock one byte for this open file description; BlockingIOError when somebody else has it."""
    fcntl.fcntl(fd, fcntl.F_OFD_SETLK, struct.pack(_LOCK, fcntl.F_WRLCK, os.SEEK_SET, place, 1, 0))


def is_locked(fd: int, place: int = 0, count: int = 0) -> bool:
    """Return whether another description has locked one of `count` bytes (0: any byte). Takes no lock itself."""
    asked = struct.pack(_LOCK, fcntl.F_WRLCK, os.SEEK_SET, place, count, 0)
    return bool(struct.unpack(_LOCK, fcntl.fcntl(fd, fcntl.F_OFD_GETLK, asked))[0] != fcntl.F_UNLCK)


def sweep(folder: int) -> None:
    """Remove what nobody needs from the session's folder; anyone may, at any time."""
    with contextlib.suppress(FileNotFoundError):
        flight = _opened(FLIGHT, _FILE, folder)
        for found, _ in _files(folder, MESSAGE):
            if not is_locked(flight.fileno(), int(found[1], 16), 1):
                _unlink(found[0], folder)
    for found, names in _files(folder, SEGMENT):
        if names == 1:
            with contextlib.suppress(OSError):  # somebody holds it, or it is gone meanwhile
                _remove_unused(found[0], folder)


def is_over(folder: int) -> bool:
    """Return whether nobody belongs to the session and nothing is under way; the folder stays locked then."""
    try:
        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    with contextlib.suppress(FileNotFoundError):
        flight = _opened(FLIGHT, _FILE, folder)
        if is_locked(flight.fileno()):
            fcntl.flock(folder, fcntl.LOCK_UN)
            return False
    return True


def remove(path: str, folder: int) -> None:
    """Remove the folder of a session that is over, whatever is in it."""
    listing = _opened(".", _FOLDER, folder)
    with os.scandir(listing.fileno()) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                import shutil

                shutil.rmtree(entry.name, ignore_errors=True, dir_fd=folder)
            else:
                _unlink(entry.name, folder)
    with contextlib.suppress(OSError):
        os.rmdir(path)


def remove_leftovers(root: str) -> None:
    """Remove the sessions of this user in `root` that are over and have nobody to do so."""
    user = os.geteuid()
    for name in os.listdir(root):
        if name.startswith(f"{PREFIX}{user}-"):
            with contextlib.suppress(OSError):
                path = os.path.join(root, name)
                folder = _opened(path, _FOLDER)
                if os.fstat(folder.fileno()).st_uid == user and is_over(folder.fileno()):
                    remove(path, folder.fileno())


def manage(path: str) -> None:
    """Be the manager of a session, until it is over."""
    try:
        folder = _opened(path, _FOLDER)
        sign = _opened(SIGN, _FILE, folder.fileno())
        lock_byte(sign.fileno(), 0)
    except OSError:  # the session is over, or has a manager
        return
    if os.fork():
        os._exit(0)  # the lock is the child's from here on
    os.setsid()
    os.chdir("/")
    _close_all_but({0, 1, 2, folder.fileno(), sign.fileno()})
    with contextlib.suppress(OSError):
        remove_leftovers(os.path.dirname(path))
    while os.fstat(folder.fileno()).st_nlink:
        began = time.monotonic()
        with contextlib.suppress(OSError):  # short of something: it will be looked at again
            if is_over(folder.fileno()):
                remove(path, folder.fileno())
                return
            sweep(folder.fileno())
        time.sleep(max(LOOK_SECONDS, SHARE * (time.monotonic() - began)))


def _remove_unused(name: str, folder: int) -> None:
    file = _opened(name, _FILE, folder)
    fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    if os.fstat(file.fileno()).st_nlink == 1:
        os.unlink(name, dir_fd=folder)


def _files(folder: int, pattern: "re.Pattern[str]") -> Iterator[tuple["re.Match[str]", int]]:
    """Return the files with such a name and how many names each has, through a description of its own."""
    listing = _opened(".", _FOLDER, folder)
    with os.scandir(listing.fileno()) as entries:
        for entry in entries:
            if found := pattern.fullmatch(entry.name):
                with contextlib.suppress(FileNotFoundError):
                    yield found, entry.stat(follow_symlinks=False).st_nlink


def _unlink(name: str, folder: int) -> None:
    with contextlib.suppress(OSError):
        os.unlink(name, dir_fd=folder)


def _opened(name: str, flags: int, folder: int | None = None) -> "select.epoll":
    """Return an owned descriptor: it is closed with the object."""
    return select.epoll.fromfd(os.open(name, flags, dir_fd=folder))


def _close_all_but(kept: set[int]) -> None:
    for name in os.listdir("/proc/self/fd"):
        if int(name) not in kept:
            with contextlib.suppress(OSError):
                os.close(int(name))


if __name__ == "__main__":
    manage(sys.argv[1])
