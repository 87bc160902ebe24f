"""What other threads ask a pool's thread to do: calls, done in the order in which they were asked for.

A thread that sleeps in its selector is woken by a descriptor; one that works looks by itself before it sleeps, so most
requests cost no system call. No lock: whoever dies or is interrupted holds nothing.
"""

import contextlib
import os
from collections import deque
from collections.abc import Callable
from typing import Any

from nbmp.launching.private import Descriptor


class Requests:
    """The requests to one thread."""

    def __init__(self, wake_up: Descriptor) -> None:
        self._wake_up: Descriptor | None = wake_up
        """Readable when the thread has to look."""
        self.asleep = False
        """Set by the thread: True before it looks for the last time and then sleeps."""
        self._waiting: deque[tuple[Callable[..., Any], tuple[Any, ...]]] = deque()

    @staticmethod
    def descriptor() -> Descriptor:
        """Return a new descriptor to be woken by."""
        return Descriptor(os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK))

    def __bool__(self) -> bool:
        """Return whether something was asked for and not begun."""
        return bool(self._waiting)

    def ask(self, request: Callable[..., Any], *arguments: Any) -> None:
        """Have this called, and wake the thread if it sleeps."""
        self._waiting.append((request, arguments))
        wake_up = self._wake_up
        if self.asleep and wake_up is not None:
            with contextlib.suppress(OSError, ValueError):  # in a forked child it is closed
                os.eventfd_write(wake_up.fileno(), 1)

    def awake(self) -> None:
        """The thread was woken."""
        if self._wake_up is not None:
            with contextlib.suppress(BlockingIOError):
                os.eventfd_read(self._wake_up.fileno())

    def close(self) -> None:
        """The thread has ended. The descriptor is closed when nobody writes to it any more.

        Closed at once, its number could stand for another file before a thread that has just asked writes to it: the
        channel of the next pool, say.
        """
        self._wake_up = None

    def do_all(self) -> None:
        """Do what was asked for."""
        while self._waiting:
            try:
                request, arguments = self._waiting.popleft()
            except IndexError:  # another thread does them too, after the end
                return
            request(*arguments)
