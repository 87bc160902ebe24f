"""A moment in which a fork copies no lock that another thread holds, of those that a rank cannot do without.

    BLAS       OpenBLAS ends its threads before a fork: with a call in them both wait for ever.
    imports    A module that another thread is importing can never be imported by the child: Python waits for that
               thread, which the child does not have.
    libraries  One figure is drawn at a time, in the whole process; one class is pickled by value.
    logging    Python makes the locks of handlers anew in a child, but not that of the buffer below: a record that
               another thread is writing to a file at that moment leaves it locked for good.

So the launching process waits until nothing of that is under way, and holds back what is to come: calls of BLAS get
one thread, imports and logging wait. Each for a bounded time, since whoever has a lock may wait for this thread. What
lasts longer is

    BLAS       a reason for another start method by default; where a fork was asked for, an error
    imports    a reason for another start method by default. In a fork the lock is taken away: the module is there as
               far as it was, as in a circular import
    libraries  taken away in a fork: what another thread was drawing is left as far as it was
    logging    left alone

What cannot be waited for is let go of in the child: SQLite's locks, see `sqlite`.
"""

import contextlib
import logging
import os
import sys
import threading
import time
from _imp import acquire_lock, release_lock
from collections.abc import Iterable, Iterator
from importlib import import_module
from types import ModuleType
from typing import Any, NamedTuple

from nbmp import platforms
from nbmp.errors import StartError
from nbmp.launching import sqlite
from nbmp.launching.libraries import ThreadNumber
from nbmp.launching.threads import limited, others_may_compute, wait_for_computations

IMPORT_SECONDS = 2.0
"""How long an import in another thread is waited for."""
ASLEEP_SECONDS = 0.2
"""One whose thread has slept for so long waits for something, perhaps for this very launch: it is left alone."""
COMPUTE_SECONDS = 30.0
"""How long a computation is waited for: to fork all the same would be the end of this process."""
LOCK_SECONDS = 0.5
"""How long the locks of logging are waited for, in all; and those of libraries."""
LIBRARY_LOCKS = (
    ("cloudpickle.cloudpickle", "_DYNAMIC_CLASS_TRACKER_LOCK"),
    ("matplotlib.figure", "Figure._render_lock"),
)
"""Locks that all threads have in common: module and name. A module is not loaded for that."""
_LOOK_SECONDS = 0.001


_bootstrap: Any = import_module("importlib._bootstrap")
"""There is no public way to what is being imported."""


class Import(NamedTuple):
    """A module that a thread is importing."""

    module: str
    thread: int
    """As `threading.get_ident`."""


class Quiet:
    """A moment in which this process can fork; the child calls `be_alone` in place of leaving it."""

    def __init__(self) -> None:
        self._held = contextlib.ExitStack()
        self._one_thread = ThreadNumber()

    def __enter__(self) -> "Quiet":
        sqlite.prepare()
        with self._held as held:
            if others_may_compute():
                self._one_thread = held.enter_context(limited(1))
                _wait_long_for_computations()
            _hold_back_imports()
            held.callback(release_lock)
            for lock in _taken(_logging_locks(), LOCK_SECONDS):  # not before: a module may log while it is imported
                held.callback(lock.release)
            for lock in _taken(_library_locks(), LOCK_SECONDS):
                held.callback(lock.release)
            self._held = held.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._held.close()

    def be_alone(self) -> None:
        """Let go of everything, also of imports by threads that are not there. Logging has done so itself."""
        self._one_thread.put_back()
        self._held.pop_all()
        release_lock()
        for lock in _library_locks():
            lock._at_fork_reinit()  # as the standard library does with its own
        for name, lock in _import_locks():
            if lock.owner != threading.get_ident():
                _bootstrap._module_locks.pop(name, None)
        sqlite.let_go()


def _wait_long_for_computations() -> None:
    if not wait_for_computations(COMPUTE_SECONDS):
        raise StartError(
            f"another thread computes, in threads of NumPy's library, for more than {COMPUTE_SECONDS:g} s by now; a "
            "fork would wait for it and it for the fork, for ever: use start_method='forkserver', or wait for it"
        )


def busy_elsewhere() -> str | None:
    """Return, in words, what another thread does not come to an end with that a fork would break."""
    if not wait_for_computations(IMPORT_SECONDS):
        return (
            f"another thread computes in threads of a library, for more than {IMPORT_SECONDS:g} s by now, and a fork "
            "might hang for ever"
        )
    return import_elsewhere()


def import_elsewhere() -> str | None:
    """Return, in words, which import another thread does not come to an end with; None when there is none."""
    waiting = _Waiting()
    while imports := waiting.look():
        if waiting.is_over():
            found = imports[0]
            return (
                f"thread {_name(found.thread)} is importing {found.module}, for more than {IMPORT_SECONDS:g} s by now, "
                "and a forked rank could not import it"
            )
        time.sleep(_LOOK_SECONDS)
    return None


def _hold_back_imports() -> None:
    """Return with the lock that every import takes first, and no import under way, if that can be had in time."""
    waiting = _Waiting()
    acquire_lock()
    while waiting.look() and not waiting.is_over():
        release_lock()
        time.sleep(_LOOK_SECONDS)
        acquire_lock()


class _Waiting:
    """For the imports of other threads to come to an end."""

    def __init__(self) -> None:
        self._give_up = time.monotonic() + IMPORT_SECONDS

    def is_over(self) -> bool:
        return time.monotonic() > self._give_up

    def look(self) -> list[Import]:
        """Return those under way in threads that have not slept for long."""
        found = [Import(name, lock.owner) for name, lock in _import_locks()]
        others = [one for one in found if one.thread not in (None, threading.get_ident())]
        for over in _asleep.keys() - set(others):
            _asleep.pop(over, None)
        return [one for one in others if not _sleeps(one)]


_asleep: dict[Import, tuple[int, float]] = {}
"""How often the thread had run when it was seen asleep, and since when that has been so."""


def _sleeps(one: Import) -> bool:
    thread = threading._active.get(one.thread)  # type: ignore[attr-defined]  # `enumerate` would wait for its lock
    status = platforms.thread_status(os.getpid(), getattr(thread, "native_id", None) or 0)
    if status is None or status.state != "S":
        _asleep.pop(one, None)
        return status is None  # it has ended
    now = time.monotonic()
    switches, since = _asleep.get(one, (-1, now))
    if switches != status.switches:
        since = now
    _asleep[one] = status.switches, since
    return now - since > ASLEEP_SECONDS


def _import_locks() -> list[tuple[str, Any]]:
    locks = [(name, reference()) for name, reference in _bootstrap._module_locks.copy().items()]
    return [(name, lock) for name, lock in locks if hasattr(lock, "owner")]


def _name(ident: int) -> str:
    thread = threading._active.get(ident)  # type: ignore[attr-defined]  # as above
    return repr(thread.name) if thread is not None else str(ident)


def _logging_locks() -> list[Any]:
    """Return the locks of logging, its own first as it takes them itself."""
    handlers = [reference() for reference in logging._handlerList]  # type: ignore[attr-defined]  # no public list
    return [logging._lock, *(handler.lock for handler in handlers if handler)]  # type: ignore[attr-defined]


def _library_locks() -> list[Any]:
    found = [_found(sys.modules.get(module), names) for module, names in LIBRARY_LOCKS]
    return [lock for lock in found if hasattr(lock, "_at_fork_reinit")]


def _found(module: ModuleType | None, names: str) -> Any:
    thing: Any = module
    for name in names.split("."):
        thing = getattr(thing, name, None)
    return thing


def _taken(locks: Iterable[Any], seconds: float) -> Iterator[Any]:
    """Take these locks, those that can be had in time."""
    give_up = time.monotonic() + seconds
    for lock in locks:
        if hasattr(lock, "acquire") and lock.acquire(timeout=max(0.0, give_up - time.monotonic())):
            yield lock
