"""Hold back Ctrl-C for the moment in which ranks are started.

Blocking SIGINT in this thread would not do: a notebook's kernel has other threads, which take the signal, and Python
then raises KeyboardInterrupt here all the same, in the worst case inside a hook of `os.fork`, where it is printed and
lost.
"""

import contextlib
import signal
import threading
from collections.abc import Iterator


@contextlib.contextmanager
def held_back() -> Iterator[None]:
    """Have an interrupt that comes in this block raised at its end. Elsewhere than in the main thread none can come."""
    handler = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(handler):
        yield
        return
    came: list[int] = []
    signal.signal(signal.SIGINT, lambda number, _: came.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        if came:
            signal.raise_signal(signal.SIGINT)
