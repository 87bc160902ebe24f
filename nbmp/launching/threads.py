"""Threads of BLAS and OpenMP libraries that a rank inherits loaded, where environment variables come too late.

The number is set in the process that forks, around the forks, and put back: a forked child that sets it itself starts
OpenBLAS' thread pool anew, which costs it milliseconds (measured: 0.6 to 4).
"""

import contextlib
import sys
import threading
from collections.abc import Iterator

from nbmp.launching.private import in_forked_child

_lock = threading.Lock()


@contextlib.contextmanager
def limited(threads: int | None) -> Iterator[None]:
    """Give the libraries that are loaded `threads` threads while this lasts; None leaves them alone."""
    if threads is None or "numpy" not in sys.modules:
        yield
        return
    import threadpoolctl

    with _lock, threadpoolctl.threadpool_limits(threads):
        yield


def _forget() -> None:
    global _lock
    _lock = threading.Lock()


in_forked_child(_forget)
