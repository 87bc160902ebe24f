"""How many threads the libraries that are loaded compute in: BLAS and OpenMP.

OpenBLAS ends its threads before a fork and starts them again when a call needs them. Its function that sets their
number starts them as well, and each then spins for 27 ms before it goes to sleep: on a machine of 64 cores that is more
than a second of a core, for a launch that computes nothing. So the number is written where OpenBLAS keeps it, in a
variable that the library shows. Not if it is to be more than there are threads, nor where that variable is not found
(NumPy's wheels hide it from 2.5 on), or is not the one: then the function does it, unless that is the number already.
"""

import sys
from collections.abc import Callable
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import threadpoolctl

_IN_USE, _AT_MOST = "blas_cpu_number", "blas_num_threads"
"""OpenBLAS' variables: threads of a call, threads of its pool."""


class ThreadNumber:
    """The number of threads of every library that is loaded: changed, and put back, perhaps in a forked child."""

    def __init__(self) -> None:
        self._undo: list[Callable[[], object]] = []

    def set(self, threads: int) -> None:
        if "numpy" not in sys.modules:
            return
        others = []
        for library in _loaded().lib_controllers:
            before = library.num_threads
            if before == threads:
                continue
            if is_pooled(library) and _write(library, threads):
                self._undo.append(partial(_write, library, before))
            else:
                others.append(library.filepath)
        if others:
            limit = _loaded().select(filepath=others).limit(limits=threads)
            self._undo.append(limit.restore_original_limits)

    def put_back(self) -> None:
        while self._undo:
            self._undo.pop()()


def has_pool() -> bool:
    """Return whether there is an OpenBLAS with threads of its own, not OpenMP's."""
    return "numpy" in sys.modules and any(map(is_pooled, _loaded().lib_controllers))


def is_pooled(library: Any) -> bool:
    return getattr(library, "threading_layer", None) == "pthreads"


def _loaded() -> "threadpoolctl.ThreadpoolController":
    return _found(len(sys.modules))


@lru_cache(maxsize=1)
def _found(modules: int) -> "threadpoolctl.ThreadpoolController":
    """Look for them again (3 ms) when the number of imported modules has changed."""
    import threadpoolctl

    return threadpoolctl.ThreadpoolController()


def _write(library: Any, threads: int) -> bool:
    """Write the number into the variable; return whether that is the library's number now."""
    import ctypes  # here: most new interpreters that are ranks have no use for it

    try:
        in_use, at_most = (ctypes.c_int.in_dll(library.dynlib, name) for name in (_IN_USE, _AT_MOST))
    except (AttributeError, ValueError):
        return False
    if threads > at_most.value or in_use.value != library.num_threads:
        return False
    before, in_use.value = in_use.value, threads
    if library.num_threads == threads:
        return True
    in_use.value = before  # it was another library's
    return False
