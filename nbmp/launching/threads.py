"""Threads of BLAS and OpenMP libraries that a rank inherits loaded, where environment variables come too late.

The number is set in the process that forks, around the forks, and put back: it has the lock for that.
"""

import contextlib
import os
import threading
import time
from collections.abc import Iterator, Mapping

from nbmp import platforms
from nbmp.launching.libraries import ThreadNumber, has_pool
from nbmp.launching.private import in_forked_child

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

_lock = threading.RLock()
"""A fork has a number for its rank, and another one for its own moment."""

_LOOK_SECONDS = 0.001
_IDLE_LOOKS = 2
"""Looks in a row that must find nothing: a call that has just begun has not woken its threads yet."""


def wait_for_computations(seconds: float) -> bool:
    """Wait while another Python thread computes with threads of a library; return whether it has ended in time.

    OpenBLAS ends its pool before a fork. If a call uses the pool at that moment, neither this call nor the fork ever
    comes to an end, and the interpreter's lock is held. Python threads that run without that lock are in C code, and
    nothing tells in which; so it counts when one of them and a thread that is not Python's run at the same time.
    """
    give_up, idle = time.monotonic() + seconds, 0
    if not others_may_compute():
        return True
    while idle < _IDLE_LOOKS:
        python, other = _running()
        if not python:
            return True
        idle = 0 if other else idle + 1
        if time.monotonic() > give_up:
            return False
        time.sleep(_LOOK_SECONDS)
    return True


_COMPUTE_NOTHING = ("nbmp", "IPython", "ipykernel", "zmq", "tqdm")
"""Packages whose threads do not, those of the kernel but for its subshells, which run the user's code."""


def others_may_compute() -> bool:
    """Return whether there are threads of the user's, one of which may begin to compute at any moment."""
    here = threading.get_ident()
    known = dict(threading._active).items()  # type: ignore[attr-defined]  # `enumerate` would wait for its lock
    return any(ident != here and _may_compute(thread) for ident, thread in known) and has_pool()


def _may_compute(thread: threading.Thread) -> bool:
    runs = getattr(thread, "_target", None) if type(thread) is threading.Thread else type(thread)
    home = getattr(runs, "__module__", None) or thread.name  # a builtin has none
    return "subshell" in home or not home.startswith(_COMPUTE_NOTHING)


def _running() -> tuple[bool, bool]:
    """Return whether another thread of Python, and one of a library, runs or is about to."""
    process, here = os.getpid(), threading.get_native_id()
    python = {thread.native_id for thread in list(threading._active.values())}  # type: ignore[attr-defined]
    running = [thread for thread in platforms.threads_of(process) if thread != here and _runs(process, thread)]
    return any(thread in python for thread in running), any(thread not in python for thread in running)


def _runs(process: int, thread: int) -> bool:
    status = platforms.thread_status(process, thread)
    return status is not None and status.state in "RD"


@contextlib.contextmanager
def limited(threads: int | None) -> Iterator[ThreadNumber]:
    """Give the libraries that are loaded `threads` threads while this lasts; None leaves them alone.

    No other thread does so meanwhile: it would put back what this one has set.
    """
    number = ThreadNumber()
    if threads is None:
        yield number
        return
    with _lock:
        number.set(threads)
        try:
            yield number
        finally:
            number.put_back()


def as_set(variables: Mapping[str, str]) -> int | None:
    """Return the number of threads that these environment variables ask of OpenBLAS or MKL, None when of neither."""
    for name in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"):
        first = variables.get(name, "").partition(",")[0].strip()
        if first.isdigit() and int(first) > 0:
            return int(first)
    return None


def _forget() -> None:
    global _lock
    _lock = threading.RLock()


in_forked_child(_forget)
