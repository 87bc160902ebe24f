"""Threads of BLAS and OpenMP libraries that a rank inherits loaded, where environment variables come too late.

The number is set in the process that forks, around the forks, and put back: a forked child that sets it itself starts
OpenBLAS' thread pool anew, which costs it milliseconds (measured: 0.6 to 4).
"""

import contextlib
import sys
import threading
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING

from nbmp.launching.private import in_forked_child

if TYPE_CHECKING:
    import threadpoolctl

THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMEXPR_NUM_THREADS",
)
"""Each rank gets cores / ranks threads in them, unless they are set."""

SERVER_THREADS = 1
"""Of the fork server itself: it has no pool that a fork would break."""

_lock = threading.Lock()


@contextlib.contextmanager
def limited(threads: int | None) -> Iterator[None]:
    """Give the libraries that are loaded `threads` threads while this lasts; None leaves them alone."""
    if threads is None or "numpy" not in sys.modules:
        yield
        return
    with _lock, _libraries(len(sys.modules)).limit(limits=threads):
        yield


@lru_cache(maxsize=1)
def _libraries(modules: int) -> "threadpoolctl.ThreadpoolController":
    """Return the libraries that are loaded; looked for again (3 ms) when the number of imported modules has changed."""
    import threadpoolctl

    return threadpoolctl.ThreadpoolController()


def as_set(variables: Mapping[str, str]) -> int | None:
    """Return the number of threads that these environment variables ask of OpenBLAS or MKL, None when of neither."""
    for name in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"):
        first = variables.get(name, "").partition(",")[0].strip()
        if first.isdigit() and int(first) > 0:
            return int(first)
    return None


def _forget() -> None:
    global _lock
    _lock = threading.Lock()


in_forked_child(_forget)
