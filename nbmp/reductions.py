"""Shared arrays in the standard library's own queues, pipes and pools: torch's module of this name, opt-in here.

nbmp's channels know arrays without it. `init_reductions` teaches the standard library's pickler as well, and with it
every library in this process that uses `multiprocessing`; so it is never called by nbmp itself.

    sender      puts the array into a channel made for it, as into a queue, and has the standard library send the other
                end; it must live until that is fetched (the standard library has a thread that waits for that)
    receiver    fetches the end when it unpickles, and the array from it: the same memory
"""

from multiprocessing import reduction
from multiprocessing.context import get_spawning_popen
from multiprocessing.reduction import DupFd, ForkingPickler
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nbmp.channels import Channel
from nbmp.memory.arrays import is_shared
from nbmp.pickling.quick import snapshot

__all__ = ["ForkingPickler", "init_reductions", "rebuild_array", "reduce_array", "reduction"]


def init_reductions() -> None:
    """Have `multiprocessing`'s queues, pipes, pools and processes send shared arrays by handle, from here on.

    Private arrays are pickled as before. Processes that receive need nbmp, but need not have called this.
    """
    ForkingPickler.register(np.ndarray, reduce_array)


def reduce_array(array: NDArray[Any]) -> tuple[Any, ...]:
    """Return how `ForkingPickler` is to pickle an array: a shared one by handle, a private one by its bytes."""
    if not is_shared(array):
        return array.__reduce__()  # type: ignore[return-value]  # a tuple, for arrays
    sender, receiver = Channel.pair()
    sender.send(snapshot(array))
    starting = get_spawning_popen()
    if starting is not None:  # it takes the descriptor along when the process starts, and makes no duplicate
        vars(starting).setdefault("_nbmp_receivers", []).append(receiver)
    return rebuild_array, (DupFd(receiver.fd),)


def rebuild_array(fd: Any) -> NDArray[Any]:
    """Return the array, in the process that receives it."""
    array: NDArray[Any] = Channel.of_fd(fd.detach()).take()
    return array
