"""Shared arrays in the standard library's own queues, pipes and pools: torch's module of this name, opt-in here.

nbmp's channels know arrays without it. `init_reductions` teaches the standard library's pickler as well, and with it
every library in this process that uses `multiprocessing`; so it is never called by nbmp itself.

    sender      keeps a descriptor of the array's segment until it is fetched (the standard library's resource sharer, a
                thread), so it must live until then
    receiver    fetches it when it unpickles, and maps the same memory
"""

from multiprocessing import reduction
from multiprocessing.reduction import DupFd, ForkingPickler
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nbmp.memory.arrays import array_at, place_of
from nbmp.memory.descriptors import own

__all__ = ["ForkingPickler", "init_reductions", "rebuild_array", "reduce_array", "reduction"]


def init_reductions() -> None:
    """Have `multiprocessing`'s queues, pipes, pools and processes send shared arrays by handle, from here on.

    Private arrays are pickled as before. Processes that receive need nbmp, but need not have called this.
    """
    ForkingPickler.register(np.ndarray, reduce_array)


def reduce_array(array: NDArray[Any]) -> tuple[Any, ...]:
    """Return how `ForkingPickler` is to pickle an array: a shared one by handle, a private one by its bytes."""
    place = place_of(array)
    if place is None:
        return array.__reduce__()  # type: ignore[return-value]  # a tuple, for arrays
    segment, offset = place
    return rebuild_array, (DupFd(segment.fd), offset, array.shape, array.strides, array.dtype, array.flags.writeable)


def rebuild_array(fd: Any, offset: int, *layout: Any) -> NDArray[Any]:
    """Return the array at this place, in the process that receives it."""
    return array_at(own(fd.detach()), offset, *layout)
