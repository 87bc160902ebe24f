"""A thread that lets go of what recycling keeps, once it lies idle: memory is back some seconds after the last array.

It runs only while something is kept.
"""

import os
import threading
from collections.abc import Callable

from nbmp.memory import mappings
from nbmp.memory.recycler import recycler
from nbmp.memory.room import when_short

IDLE_SECONDS = mappings.IDLE_SECONDS
LOOK_SECONDS = 1.0

others: list[Callable[[float], int]] = []
"""What else keeps something for a while: lets go of what was idle for so many seconds, returns how much is left."""

_lock = threading.Lock()
_thread: threading.Thread | None = None


def look_after() -> None:
    """See to it that what was kept just now does not stay for ever."""
    global _thread
    if _thread is None:
        with _lock:
            if _thread is None:
                thread = threading.Thread(target=_clean, name="nbmp-janitor", daemon=True)
                thread.start()
                _thread = thread


def trim() -> None:
    """Give back all memory that is kept for reuse in this process."""
    recycler.trim()
    mappings.trim()
    for other in others:
        other(0.0)
    _waker.set()


def _let_go() -> None:
    """Keep nothing at all: descriptors are needed."""
    recycler.let_go()
    mappings.trim()


def _clean() -> None:
    global _thread
    while True:
        _waker.wait(LOOK_SECONDS)
        _waker.clear()
        left = recycler.trim(IDLE_SECONDS) + mappings.trim(IDLE_SECONDS) + _left_with_others()
        if not left:
            with _lock:
                if not mappings.is_used() and not recycler.is_used() and not _left_with_others():
                    _thread = None
                    return


def _left_with_others() -> int:
    return sum([other(IDLE_SECONDS) for other in others])


_waker = threading.Event()


def _forget() -> None:
    global _lock, _thread
    _lock, _thread = threading.Lock(), None


os.register_at_fork(after_in_child=_forget)
when_short.append(_let_go)
