"""Threads that can be started where an interrupt may come."""

import _thread
import threading
from collections.abc import Callable
from typing import Any


def start(target: Callable[..., Any], *args: Any, name: str) -> None:
    """Have `target(*args)` run in a daemon thread; does not wait until it begins.

    `threading.Thread.start` waits for the new thread, in Python, with a lock: a KeyboardInterrupt in that wait can
    leave the lock taken, and then the new thread waits for it for ever. So it is called in another thread, which no
    interrupt reaches. To make that one is a single call into C: an interrupt comes before it or after it.
    """
    _thread.start_new_thread(_start, (target, args, name))


def _start(target: Callable[..., Any], args: tuple[Any, ...], name: str) -> None:
    thread = threading.Thread(target=target, args=args, name=name, daemon=True)
    try:
        thread.start()
    except RuntimeError:  # no further thread: too many, or the interpreter ends
        target(*args)
