"""A thread that lets go of what recycling keeps, once it lies idle: memory is back some seconds after the last array.

It runs only while something is kept.
"""

import contextlib
import os
import threading
from collections.abc import Callable

from nbmp import threads
from nbmp.memory import mappings
from nbmp.memory.recycler import recycler
from nbmp.memory.room import when_short

IDLE_SECONDS = mappings.IDLE_SECONDS
LOOK_SECONDS = 1.0

others: list[Callable[[float], int]] = []
"""What else keeps something for a while: lets go of what was idle for so many seconds, returns how much is left."""


def _asleep() -> threading.Lock:
    lock = threading.Lock()
    lock.acquire()
    return lock


_lock = threading.Lock()
_sleeping = _asleep()
"""Given back to wake the thread: one call into C, where an interrupt could leave the lock of an Event taken."""
_is_there = False


def look_after() -> None:
    """See to it that what was kept just now does not stay for ever."""
    global _is_there
    if not _is_there:
        with _lock:
            if not _is_there:
                threads.start(_clean, name="nbmp-janitor")
                _is_there = True


def trim() -> None:
    """Give back all memory that is kept for reuse in this process."""
    recycler.trim()
    mappings.trim()
    for other in others:
        other(0.0)
    with contextlib.suppress(RuntimeError):  # it was woken already
        _sleeping.release()


def _let_go() -> None:
    """Keep nothing at all: descriptors are needed."""
    recycler.let_go()
    mappings.trim()


def _clean() -> None:
    global _is_there
    while True:
        _sleeping.acquire(timeout=LOOK_SECONDS)
        left = recycler.trim(IDLE_SECONDS) + mappings.trim(IDLE_SECONDS) + _left_with_others()
        if not left:
            with _lock:
                if not mappings.is_used() and not recycler.is_used() and not _left_with_others():
                    _is_there = False
                    return


def _left_with_others() -> int:
    return sum([other(IDLE_SECONDS) for other in others])


def _forget() -> None:
    global _lock, _sleeping, _is_there
    _lock, _sleeping, _is_there = threading.Lock(), _asleep(), False


os.register_at_fork(after_in_child=_forget)
when_short.append(_let_go)
