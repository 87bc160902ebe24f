"""SQLite's locks for all its connections, let go in a forked child.

A fork copies them as they are. One that another thread holds at that moment, as IPython's does that writes the
history, is held in the child by a thread that is not there: the first connection that the child opens would wait for
ever. Nobody else is in the child, so whatever is held is let go, as Python and the C library do with their own locks.

They are not held around the fork: a thread that has the interpreter's lock may be waiting for one of them, and the fork
would wait for the interpreter's lock.

What stays as it was
    - what SQLite knows of a file that this process has open: in the child it believes that the file is open, and
      locked, here. A rank may open it as well; but if a transaction, or the taking of a lock, was under way at the
      fork, the file can stay locked for the rank. SQLite's own rule is that no connection is used across a fork
    - a SQLite whose functions cannot be found: linked into an interpreter that shows none of them
"""

import sys
from collections.abc import Callable
from functools import lru_cache
from typing import Any

_LOCKS = range(2, 14)
"""SQLITE_MUTEX_STATIC_MAIN to SQLITE_MUTEX_STATIC_VFS3: whoever asks for them again gets the same ones."""
_SINCE = (3, 15, 2)
"""The oldest SQLite that Python still takes has all of them; one that had fewer would hand out what lies beyond."""


def prepare() -> None:
    """Before a fork: find SQLite, if it is there. Costs something the first time."""
    _functions()


def let_go() -> None:
    """In the forked child, while it has one thread: leave every lock that a thread of the parent held."""
    functions = _functions()
    if functions is None:
        return
    alloc, take, leave = functions
    for number in _LOCKS:
        lock = alloc(number)
        take(lock)  # held by this thread now, or by one that is not there
        leave(lock)


def _functions() -> tuple[Callable[..., Any], ...] | None:
    """Return SQLite's functions that return, try to take, and leave a lock; None where they are not to be had."""
    module = sys.modules.get("_sqlite3")
    version: str | None = getattr(module, "sqlite_version", None)  # not there yet while another thread imports it
    if version is None or tuple(map(int, version.split("."))) < _SINCE:
        return None
    return _found(getattr(module, "__file__", None))


@lru_cache(maxsize=1)
def _found(library: str | None) -> tuple[Callable[..., Any], ...] | None:
    """`library` is where they are; None: in the interpreter itself."""
    try:
        import ctypes

        loaded = ctypes.PyDLL(library)
        alloc, take, leave = loaded.sqlite3_mutex_alloc, loaded.sqlite3_mutex_try, loaded.sqlite3_mutex_leave
    except (ImportError, OSError, AttributeError):
        return None
    alloc.restype = ctypes.c_void_p
    take.argtypes = leave.argtypes = [ctypes.c_void_p]
    leave.restype = None
    return alloc, take, leave
