"""Waiting for descriptors, and for what another thread does."""

import select
import threading
import time
from collections import deque
from collections.abc import Callable


def readable(fd: int, timeout: float | None) -> bool:
    """Wait until `fd` is readable, at most `timeout` seconds (None: without a bound); return whether it is."""
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    return bool(poll.poll(None if timeout is None else max(0.0, timeout * 1000)))


class Bell:
    """What a condition variable is for, without a lock that an interrupt could leave taken.

    A KeyboardInterrupt in `with condition:` may come when the lock is taken and before it is sure to be given back:
    then the thread that has to tell the news waits for ever. Here each wait has a lock of its own, which nobody needs
    after it. There is none around the state that is waited for: one thread changes it and rings.
    """

    __slots__ = ("_waiting",)

    def __init__(self) -> None:
        self._waiting: list[threading.Lock] = []

    def ring(self) -> None:
        """Wake all that wait, to look again."""
        while self._waiting:
            try:
                self._waiting.pop().release()
            except IndexError:  # another thread rings too
                return

    def wait_for(self, condition: Callable[[], object], timeout: float | None = None) -> bool:
        """Wait until `condition()` is true, at most `timeout` seconds; return whether it is."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while not condition():
            woken = threading.Lock()
            woken.acquire()
            self._waiting.append(woken)
            if condition():  # it came true before the bell knew of this wait
                break
            left = -1 if deadline is None else deadline - time.monotonic()
            if (deadline is not None and left <= 0) or not woken.acquire(timeout=left):
                return bool(condition())
        return True


class Bells:
    """Bells of one thread that are rung together: who waits is woken once for all that has come, not for each."""

    def __init__(self) -> None:
        self._bells: deque[Bell] = deque()

    def add(self, bell: Bell) -> None:
        """Have a bell rung with the others."""
        self._bells.append(bell)

    def ring(self) -> None:
        """Ring them all."""
        while self._bells:
            try:
                self._bells.popleft().ring()
            except IndexError:  # another thread rings too
                return
