"""Hold back Ctrl-C where it would do harm: while ranks are started, waited for and stopped.

Ways that do not work. Blocking SIGINT in this thread: a notebook's kernel has other threads, which take the signal,
and Python then raises KeyboardInterrupt here all the same, in the worst case inside a hook of `os.fork`, where it is
printed and lost. Catching KeyboardInterrupt: a second press comes while the first is handled, and the ranks run on;
inside a lock's own code it leaves the lock in disorder. So a press is only noted, and whoever waits for the ranks
looks at the notes.
"""

import contextlib
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from types import FrameType

from nbmp.launching.private import in_forked_child

LOOK_SECONDS = 0.05
"""How often somebody who waits looks whether an interrupt came."""


class Presses:
    """Interrupts that came while they are held back; `handler` is who would have got them."""

    def __init__(self, handler: Callable[[int, FrameType | None], object]) -> None:
        self.came = 0
        self._handler = handler

    def note(self, number: int, frame: FrameType | None) -> None:
        self.came += 1

    def deliver(self) -> None:
        """Have those that came handled now: raises KeyboardInterrupt, unless a handler of the user's does otherwise."""
        if self.came:
            self.came = 0
            self._handler(signal.SIGINT, sys._getframe())


_held: Presses | None = None


@contextlib.contextmanager
def held_back() -> Iterator[Presses]:
    """Note interrupts in this block, and deliver them at its end if that was not done before.

    Blocks nest: only the outermost delivers. One that ends in KeyboardInterrupt has told of all of them. Elsewhere
    than in the main thread none can come.
    """
    global _held
    handler = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(handler):
        yield Presses(lambda *_: None)
        return
    if _held is not None:
        yield _held
        return
    presses = Presses(handler)
    signal.signal(signal.SIGINT, presses.note)
    try:
        _held = presses
        yield presses
    except KeyboardInterrupt:
        presses.came = 0
        raise
    finally:
        _held = None
        signal.signal(signal.SIGINT, handler)
        presses.deliver()


def _forget() -> None:
    global _held
    _held = None


in_forked_child(_forget)
