"""Descriptors that only the launching process may hold.

A forked child inherits everything. If it kept the write end of another rank's lifeline, that rank would outlive its
launcher; if it kept the fork server's socket, the server would never see its launcher go. So whatever is registered
here is closed in every forked child, ours or not; in programs that are executed it is closed by being close-on-exec.
"""

import contextlib
import os
import threading
from collections.abc import Callable, Iterator
from typing import Protocol
from weakref import WeakSet

from nbmp import platforms


class _Closable(Protocol):
    def close(self) -> None: ...


class Descriptor:
    """An owned descriptor with `fileno()` and `close()`."""

    def __init__(self, fd: int) -> None:
        self._owner = platforms.owner(fd)

    @property
    def fd(self) -> int:
        return self._owner.fileno()

    def fileno(self) -> int:
        return self._owner.fileno()

    def close(self) -> None:
        self._owner.close()


_held: "WeakSet[_Closable]" = WeakSet()
_forgetters: list[Callable[[], None]] = []
_no_fork_now = threading.RLock()


@contextlib.contextmanager
def making() -> Iterator[Callable[[_Closable], None]]:
    """Make descriptors and register each with the function given; no other thread forks in between."""
    with _no_fork_now:
        yield _held.add


def in_forked_child(forget: Callable[[], None]) -> None:
    """Have `forget()` called in every forked child, for state that is the launching process' alone."""
    _forgetters.append(forget)


def _close_all() -> None:
    global _no_fork_now
    _no_fork_now = threading.RLock()
    for held in list(_held):
        with contextlib.suppress(OSError):
            held.close()
    _held.clear()
    for forget in _forgetters:
        forget()


os.register_at_fork(
    before=lambda: _no_fork_now.acquire(),
    after_in_parent=lambda: _no_fork_now.release(),
    after_in_child=_close_all,
)
