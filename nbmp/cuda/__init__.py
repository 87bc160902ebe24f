"""CuPy arrays and events between processes, over CUDA IPC: the same memory arrives, nothing is copied.

Nothing has to be called: arrays in what is put into queues, given to ranks and pools, or passed through pipes travel
so by themselves, under `spawn` and `forkserver` (a fork is refused once CUDA is initialised, see
`nbmp.default_start_method`). The functions here look and clean up.

**What is shared, what is copied**

- What is sent and received, arguments too: the same memory, each side sees what the other writes.
- Results of ranks are copied, through the host: the rank, and its memory, end with its result.
- Results of a pool's tasks are copied, on the GPU by the receiver: they may outlive the pool.
- Managed and stream-ordered memory cannot be exported. The sender copies it once, on the GPU (logged at debug level):
  what arrives is a snapshot, unlike the rest.

**What waits**

`put` waits for nothing, unless a thousand events are under way. An event on the caller's current stream, recorded when
the array is put, is waited for by the current stream of whoever receives it: on the GPU, not in Python. Work on other
streams is the caller's to order, by an event that is sent as well: `cupy.cuda.Event(disable_timing=True,
interprocess=True)`. What one side writes after that the other sees when it has been ordered so, or synchronised.
Whoever records an event keeps it until it is done. While a stream is captured into a CUDA graph nothing can be sent or
received by it, and what was received has to be kept: it would be given back when the capture ends, and CUDA may end it
for that.

**How long memory lives**

Whoever sends keeps the memory until all who received it, directly or from others, have dropped it, or have ended, in
whatever way; also when a message is thrown away unread. A process that lends memory waits at its exit for those who
have it, `set_exit_timeout` seconds at most, and says who they are. A process that is killed takes its memory and its
work along: what others do with it is then undefined, as CUDA has it, and who waits for it on the GPU may wait for ever.
What they have not received yet is refused.

**On which device**

That of the sender, known by its UUID, so CUDA_VISIBLE_DEVICES may differ. `DeviceError` when the receiver cannot see
it.

Needs CuPy 14 (`pip install cupy-cuda12x`, or `cupy-cuda13x`) and NVIDIA's driver, on Linux.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nbmp.cuda.exiting import set_exit_timeout as set_exit_timeout
    from nbmp.cuda.usage import MemoryUsage as MemoryUsage
    from nbmp.cuda.usage import ipc_collect as ipc_collect
    from nbmp.cuda.usage import memory_usage as memory_usage

_HOMES = {
    "MemoryUsage": "nbmp.cuda.usage",
    "ipc_collect": "nbmp.cuda.usage",
    "memory_usage": "nbmp.cuda.usage",
    "set_exit_timeout": "nbmp.cuda.exiting",
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'nbmp.cuda' has no attribute {name!r}")
    return getattr(import_module(home), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
