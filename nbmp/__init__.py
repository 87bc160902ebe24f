"""nbmp: torch.multiprocessing for NumPy arrays, Jupyter-first.

    %load_ext nbmp          then  %%mpspawn -n 4  runs a cell in four ranks
    import nbmp as mp       and the functions below

    start       start_processes, spawn, launch, ProcessContext, SpawnContext, default_start_method
    arrays      share_memory, zeros, ones, empty, full, zeros_like, ..., is_shared, memory_usage, trim
    channels    Queue, SimpleQueue, JoinableQueue, Pipe
    pools       Pool, ProcessPoolExecutor
    errors      ProcessException, ProcessRaisedException, ProcessExitedException, ...

What lives where: `launching` starts ranks, `memory` shares arrays, `pickling` turns objects into messages, `monitoring`
takes snapshots, `notebook` is what a notebook sees. Names are loaded when they are first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nbmp.errors import BrokenPoolError as BrokenPoolError
    from nbmp.errors import CannotTravelError as CannotTravelError
    from nbmp.errors import LaunchTimeoutError as LaunchTimeoutError
    from nbmp.errors import ProcessException as ProcessException
    from nbmp.errors import ProcessExitedException as ProcessExitedException
    from nbmp.errors import ProcessRaisedException as ProcessRaisedException
    from nbmp.errors import SharedMemoryError as SharedMemoryError
    from nbmp.errors import StartError as StartError
    from nbmp.errors import StdinError as StdinError
    from nbmp.errors import UnsupportedPlatformError as UnsupportedPlatformError
    from nbmp.errors import WorkerExitedError as WorkerExitedError
    from nbmp.executor import ProcessPoolExecutor as ProcessPoolExecutor
    from nbmp.launching.context import ProcessContext as ProcessContext
    from nbmp.launching.context import SpawnContext as SpawnContext
    from nbmp.launching.default_method import default_start_method as default_start_method
    from nbmp.launching.start import launch as launch
    from nbmp.launching.start import spawn as spawn
    from nbmp.launching.start import start_processes as start_processes
    from nbmp.memory.arrays import empty as empty
    from nbmp.memory.arrays import full as full
    from nbmp.memory.arrays import is_shared as is_shared
    from nbmp.memory.arrays import ones as ones
    from nbmp.memory.arrays import zeros as zeros
    from nbmp.memory.janitor import trim as trim
    from nbmp.memory.likes import empty_like as empty_like
    from nbmp.memory.likes import full_like as full_like
    from nbmp.memory.likes import ones_like as ones_like
    from nbmp.memory.likes import zeros_like as zeros_like
    from nbmp.memory.sharing import share_memory as share_memory
    from nbmp.monitoring.memory import memory_usage as memory_usage
    from nbmp.notebook.extension import load_ipython_extension as load_ipython_extension
    from nbmp.notebook.extension import unload_ipython_extension as unload_ipython_extension
    from nbmp.pipe import Connection as Connection
    from nbmp.pipe import Pipe as Pipe
    from nbmp.platforms import cpu_count as cpu_count
    from nbmp.pool import Pool as Pool
    from nbmp.queue import JoinableQueue as JoinableQueue
    from nbmp.queue import Queue as Queue
    from nbmp.queue import SimpleQueue as SimpleQueue

__version__ = "0.1.0"

_HOMES = {
    "BrokenPoolError": "nbmp.errors",
    "CannotTravelError": "nbmp.errors",
    "Connection": "nbmp.pipe",
    "JoinableQueue": "nbmp.queue",
    "LaunchTimeoutError": "nbmp.errors",
    "Pipe": "nbmp.pipe",
    "Pool": "nbmp.pool",
    "ProcessContext": "nbmp.launching.context",
    "ProcessException": "nbmp.errors",
    "ProcessExitedException": "nbmp.errors",
    "ProcessPoolExecutor": "nbmp.executor",
    "ProcessRaisedException": "nbmp.errors",
    "Queue": "nbmp.queue",
    "SharedMemoryError": "nbmp.errors",
    "SimpleQueue": "nbmp.queue",
    "SpawnContext": "nbmp.launching.context",
    "StartError": "nbmp.errors",
    "StdinError": "nbmp.errors",
    "TimeoutError": "multiprocessing",
    "UnsupportedPlatformError": "nbmp.errors",
    "WorkerExitedError": "nbmp.errors",
    "cpu_count": "nbmp.platforms",
    "default_start_method": "nbmp.launching.default_method",
    "empty": "nbmp.memory.arrays",
    "empty_like": "nbmp.memory.likes",
    "full": "nbmp.memory.arrays",
    "full_like": "nbmp.memory.likes",
    "is_shared": "nbmp.memory.arrays",
    "launch": "nbmp.launching.start",
    "load_ipython_extension": "nbmp.notebook.extension",
    "memory_usage": "nbmp.monitoring.memory",
    "ones": "nbmp.memory.arrays",
    "ones_like": "nbmp.memory.likes",
    "share_memory": "nbmp.memory.sharing",
    "spawn": "nbmp.launching.start",
    "start_processes": "nbmp.launching.start",
    "trim": "nbmp.memory.janitor",
    "unload_ipython_extension": "nbmp.notebook.extension",
    "zeros": "nbmp.memory.arrays",
    "zeros_like": "nbmp.memory.likes",
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'nbmp' has no attribute {name!r}")
    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
