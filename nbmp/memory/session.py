"""Sessions: the folders in which named segments live. See `nbmp.memory.manager` for what is in one.

A process belongs to a session by a shared lock on its folder: to its own, which it starts or is given by the process
that launched it, and to that of each named segment it holds. A fork inherits the lock. The session, and all that is in
it, ends when the last process is gone and no message is under way.
"""

import contextlib
import errno
import fcntl
import logging
import os
import re
import secrets
import sys
import threading
import time
from functools import partial

from nbmp import platforms, threads
from nbmp.errors import MissingSegmentError
from nbmp.memory import manager
from nbmp.memory.descriptors import Owned, made
from nbmp.memory.weakly import WeakTable

LOCK_SECONDS = 1.0
"""How long to wait for a lock that the manager has for a moment; it may have been stopped while it had it."""

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC
NEW = _FILE | os.O_CREAT | os.O_EXCL
_NAME = re.compile(rf"{manager.PREFIX}(\d+)-[0-9a-f]+")
_TRIES = 100


class Session:
    """A session that this process belongs to, as long as it holds this object."""

    __slots__ = ("__weakref__", "_folder", "name")

    def __init__(self, name: str, folder: Owned) -> None:
        self.name = name
        self._folder = folder

    @property
    def fd(self) -> int:
        return self._folder.fileno()

    def open(self, name: str, flags: int = _FILE) -> Owned:
        """Open a file of the session; never what a symbolic link leads to."""
        return made(partial(os.open, mode=0o600, dir_fd=self.fd), name, flags)

    def begin_flight(self) -> tuple[Owned, int]:
        """Return a descriptor to send along with a message, and the place in its names: they stay until it is closed.

        Wherever it is: here, in a socket, at the receiver.
        """
        flight = self.open(manager.FLIGHT)
        place = secrets.randbits(62)
        manager.lock_byte(flight.fileno(), place)
        return flight, place

    def unlink(self, name: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name, dir_fd=self.fd)

    def sweep(self) -> None:
        """Do now what the manager does twice a second."""
        manager.sweep(self.fd)

    def ensure_manager(self) -> None:
        """Start a manager if there is none; it is not waited for."""
        sign = self.open(manager.SIGN)
        if not manager.is_locked(sign.fileno(), 0, 1):
            _start_manager(self._path())

    def _path(self) -> str:
        return f"{platforms.shared_memory_folder()}/{self.name}"


_own: Session | None = None
_joined: WeakTable[Session] = WeakTable()
_lock = threading.Lock()
_starting: set[str] = set()
"""Sessions whose manager is being started, and who waits for that."""


def own_session() -> Session:
    """Return the session in which this process makes its segments, started now if there is none."""
    global _own
    if _own is None:
        with _lock:
            if _own is None:
                _own = _joined.put((session := _new()).name, session)
    return _own


def leave_own_session() -> None:
    """Make the next segment in a new session: the folder of this one was removed, or is not ours any more."""
    global _own
    _own = None


def sweep_own_session() -> None:
    """Have memory that nobody uses any more be free now, if there is a session."""
    if _own is not None:
        _own.sweep()


def belong_to(name: str) -> None:
    """Make segments in this session from now on, if it can be joined."""
    global _own
    with contextlib.suppress(OSError, MissingSegmentError):
        _own = join(name)


def join(name: str) -> Session:
    """Return the session of this name; MissingSegmentError when there is none.

    A folder of that name that belongs to another user than the name says, or that others may write to, is none: anybody
    may make one when the session's own is gone, and what is in it would be unpickled here.
    """
    found = _joined.get(name)
    if found is None:
        user = _NAME.fullmatch(name)
        if user is None:
            raise MissingSegmentError(f"{name!r} is not the name of a session of named shared memory")
        try:
            folder = made(os.open, f"{platforms.shared_memory_folder()}/{name}", _FOLDER)
        except FileNotFoundError:
            raise MissingSegmentError(
                f"the folder {name} of named shared memory is not there: somebody has removed it, or this process has "
                "another /dev/shm (a container?) than the one that sent an array"
            ) from None
        except (PermissionError, NotADirectoryError):
            raise MissingSegmentError(_not_ours(name)) from None
        status = os.fstat(folder.fileno())
        if status.st_uid != int(user[1]) or status.st_mode & 0o077:
            raise MissingSegmentError(_not_ours(name))
        lock_shared(folder)  # without it we are a guest, which is what the message under way is for
        found = _joined.put(name, Session(name, folder))
    return found


def _not_ours(name: str) -> str:
    return f"{name} in /dev/shm is not the folder of a session of nbmp's: somebody has put it there"


def lock_shared(owned: Owned) -> bool:
    """Take a shared lock, which only the manager can be in the way of, and only for a moment; return whether we did."""
    give_up = 0.0
    while True:
        try:
            fcntl.flock(owned.fileno(), fcntl.LOCK_SH | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            now = time.monotonic()
            give_up = give_up or now + LOCK_SECONDS
            if now > give_up:
                return False
            time.sleep(0.001)


def _new() -> Session:
    root = platforms.shared_memory_folder()
    for _ in range(_TRIES):
        name = f"{manager.PREFIX}{os.geteuid()}-{secrets.token_hex(6)}"
        try:
            os.mkdir(f"{root}/{name}", 0o700)
            folder = made(os.open, f"{root}/{name}", _FOLDER)
        except (FileExistsError, FileNotFoundError):  # another session's manager has taken it for a leftover
            continue
        if lock_shared(folder) and os.fstat(folder.fileno()).st_nlink:
            session = Session(name, folder)
            for file in (manager.FLIGHT, manager.SIGN):
                session.open(file, NEW)
            return session
    raise OSError(errno.EAGAIN, f"no folder for named shared memory could be made in {root}")


def _start_manager(path: str) -> None:
    if path in _starting:
        return
    null = (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDWR, 0)
    output = [(os.POSIX_SPAWN_DUP2, 0, fd) for fd in (1, 2)]
    command = [sys.executable, "-I", "-S", manager.__file__, path]
    try:  # its own group: Ctrl-C is not meant for it
        pid = os.posix_spawn(command[0], command, os.environ, file_actions=[null, *output], setpgroup=0)
    except OSError as error:
        logging.getLogger("nbmp").warning("the manager of named shared memory could not be started: %s", error)
        return
    _starting.add(path)
    try:
        threads.start(_reap, pid, path, name="nbmp-manager-start")
    except BaseException:
        _starting.discard(path)
        raise


def _reap(pid: int, path: str) -> None:
    with contextlib.suppress(ChildProcessError):  # somebody else's wait() took it
        os.waitpid(pid, 0)
    _starting.discard(path)


def _forget() -> None:
    """In a forked child: another thread may have held the lock."""
    global _lock
    _lock = threading.Lock()
    _starting.clear()


os.register_at_fork(after_in_child=_forget)
