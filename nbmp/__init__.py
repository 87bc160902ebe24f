"""nbmp: torch.multiprocessing for NumPy arrays, Jupyter-first.

    %load_ext nbmp          then  %%mpspawn -n 4  runs a cell in four ranks
    import nbmp as mp       and the functions below

    start       start_processes, spawn, launch, ProcessContext, SpawnContext, default_start_method
    arrays      share_memory, zeros, ones, empty, full, zeros_like, ..., is_shared, memory_usage, trim
    strategies  set_sharing_strategy, get_sharing_strategy, get_all_sharing_strategies
    channels    Queue, SimpleQueue, JoinableQueue, Pipe
    processes   Process, Pool, ProcessPoolExecutor
    contexts    get_context, set_start_method, and the rest of multiprocessing's names: Lock, Event, Value, Manager, ...
    a look      monitor, memory_monitor, status, output, last_launch; progress makes a progress bar
    GPUs        cuda: CuPy arrays travel without a copy; cuda.memory_usage, cuda.ipc_collect
    errors      ProcessException, ProcessRaisedException, ProcessExitedException, ...

What lives where: `launching` starts ranks, `pools` keeps workers busy, `memory` shares arrays, `pickling` turns objects
into messages, `monitoring` takes snapshots, `notebook` is what a notebook sees, `cuda` sends CuPy arrays. Names are
loaded at first use.
"""

import re
import sys
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from multiprocessing import AuthenticationError as AuthenticationError
    from multiprocessing import BufferTooShort as BufferTooShort
    from multiprocessing import ProcessError as ProcessError
    from multiprocessing import RawArray as RawArray
    from multiprocessing import RawValue as RawValue
    from multiprocessing import TimeoutError as TimeoutError
    from multiprocessing import active_children as active_children
    from multiprocessing import allow_connection_pickling as allow_connection_pickling
    from multiprocessing import current_process as current_process
    from multiprocessing import freeze_support as freeze_support
    from multiprocessing import get_logger as get_logger
    from multiprocessing import log_to_stderr as log_to_stderr
    from multiprocessing import parent_process as parent_process
    from multiprocessing import reducer as reducer
    from multiprocessing import set_executable as set_executable

    from nbmp.bars import progress as progress
    from nbmp.context import Array as Array
    from nbmp.context import Barrier as Barrier
    from nbmp.context import BoundedSemaphore as BoundedSemaphore
    from nbmp.context import Condition as Condition
    from nbmp.context import Event as Event
    from nbmp.context import Lock as Lock
    from nbmp.context import Manager as Manager
    from nbmp.context import RLock as RLock
    from nbmp.context import Semaphore as Semaphore
    from nbmp.context import Value as Value
    from nbmp.context import get_context as get_context
    from nbmp.context import set_forkserver_preload as set_forkserver_preload
    from nbmp.errors import BrokenMessageError as BrokenMessageError
    from nbmp.errors import BrokenPoolError as BrokenPoolError
    from nbmp.errors import CannotTravelError as CannotTravelError
    from nbmp.errors import CudaForkError as CudaForkError
    from nbmp.errors import DeviceError as DeviceError
    from nbmp.errors import LaunchTimeoutError as LaunchTimeoutError
    from nbmp.errors import MissingSegmentError as MissingSegmentError
    from nbmp.errors import OpenFilesError as OpenFilesError
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
    from nbmp.launching.default_method import get_all_start_methods as get_all_start_methods
    from nbmp.launching.default_method import get_start_method as get_start_method
    from nbmp.launching.default_method import set_start_method as set_start_method
    from nbmp.launching.last import last_launch as last_launch
    from nbmp.launching.start import launch as launch
    from nbmp.launching.start import spawn as spawn
    from nbmp.launching.start import start_processes as start_processes
    from nbmp.launching.written.outputs import output as output
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
    from nbmp.memory.strategy import get_all_sharing_strategies as get_all_sharing_strategies
    from nbmp.memory.strategy import get_sharing_strategy as get_sharing_strategy
    from nbmp.memory.strategy import set_sharing_strategy as set_sharing_strategy
    from nbmp.monitoring.memory.usage import memory_usage as memory_usage
    from nbmp.monitoring.showing import monitor as monitor
    from nbmp.monitoring.status import status as status
    from nbmp.notebook.extension import load_ipython_extension as load_ipython_extension
    from nbmp.notebook.extension import unload_ipython_extension as unload_ipython_extension
    from nbmp.notebook.memory.monitor import memory_monitor as memory_monitor
    from nbmp.pipe import Connection as Connection
    from nbmp.pipe import Pipe as Pipe
    from nbmp.platforms import cpu_count as cpu_count
    from nbmp.pool import Pool as Pool
    from nbmp.process import Process as Process
    from nbmp.queue import JoinableQueue as JoinableQueue
    from nbmp.queue import Queue as Queue
    from nbmp.queue import SimpleQueue as SimpleQueue
    from nbmp.reductions import init_reductions as init_reductions

__version__ = "0.1.0"

_HOMES = {
    "Array": "nbmp.context",
    "AuthenticationError": "multiprocessing",
    "Barrier": "nbmp.context",
    "BoundedSemaphore": "nbmp.context",
    "BrokenMessageError": "nbmp.errors",
    "BrokenPoolError": "nbmp.errors",
    "BufferTooShort": "multiprocessing",
    "CannotTravelError": "nbmp.errors",
    "Condition": "nbmp.context",
    "Connection": "nbmp.pipe",
    "CudaForkError": "nbmp.errors",
    "DeviceError": "nbmp.errors",
    "Event": "nbmp.context",
    "JoinableQueue": "nbmp.queue",
    "LaunchTimeoutError": "nbmp.errors",
    "Lock": "nbmp.context",
    "Manager": "nbmp.context",
    "MissingSegmentError": "nbmp.errors",
    "OpenFilesError": "nbmp.errors",
    "Pipe": "nbmp.pipe",
    "Pool": "nbmp.pool",
    "Process": "nbmp.process",
    "ProcessContext": "nbmp.launching.context",
    "ProcessError": "multiprocessing",
    "ProcessException": "nbmp.errors",
    "ProcessExitedException": "nbmp.errors",
    "ProcessPoolExecutor": "nbmp.executor",
    "ProcessRaisedException": "nbmp.errors",
    "Queue": "nbmp.queue",
    "RLock": "nbmp.context",
    "RawArray": "multiprocessing",
    "RawValue": "multiprocessing",
    "Semaphore": "nbmp.context",
    "SharedMemoryError": "nbmp.errors",
    "SimpleQueue": "nbmp.queue",
    "SpawnContext": "nbmp.launching.context",
    "StartError": "nbmp.errors",
    "StdinError": "nbmp.errors",
    "TimeoutError": "multiprocessing",
    "UnsupportedPlatformError": "nbmp.errors",
    "Value": "nbmp.context",
    "WorkerExitedError": "nbmp.errors",
    "active_children": "multiprocessing",
    "allow_connection_pickling": "multiprocessing",
    "cpu_count": "nbmp.platforms",
    "current_process": "multiprocessing",
    "default_start_method": "nbmp.launching.default_method",
    "empty": "nbmp.memory.arrays",
    "empty_like": "nbmp.memory.likes",
    "freeze_support": "multiprocessing",
    "full": "nbmp.memory.arrays",
    "full_like": "nbmp.memory.likes",
    "get_all_sharing_strategies": "nbmp.memory.strategy",
    "get_all_start_methods": "nbmp.launching.default_method",
    "get_context": "nbmp.context",
    "get_logger": "multiprocessing",
    "get_sharing_strategy": "nbmp.memory.strategy",
    "get_start_method": "nbmp.launching.default_method",
    "init_reductions": "nbmp.reductions",
    "is_shared": "nbmp.memory.arrays",
    "last_launch": "nbmp.launching.last",
    "launch": "nbmp.launching.start",
    "load_ipython_extension": "nbmp.notebook.extension",
    "log_to_stderr": "multiprocessing",
    "memory_monitor": "nbmp.notebook.memory.monitor",
    "memory_usage": "nbmp.monitoring.memory.usage",
    "monitor": "nbmp.monitoring.showing",
    "ones": "nbmp.memory.arrays",
    "ones_like": "nbmp.memory.likes",
    "output": "nbmp.launching.written.outputs",
    "parent_process": "multiprocessing",
    "progress": "nbmp.bars",
    "reducer": "multiprocessing",
    "set_executable": "multiprocessing",
    "set_forkserver_preload": "nbmp.context",
    "set_sharing_strategy": "nbmp.memory.strategy",
    "set_start_method": "nbmp.launching.default_method",
    "share_memory": "nbmp.memory.sharing",
    "spawn": "nbmp.launching.start",
    "start_processes": "nbmp.launching.start",
    "status": "nbmp.monitoring.status",
    "trim": "nbmp.memory.janitor",
    "unload_ipython_extension": "nbmp.notebook.extension",
    "zeros": "nbmp.memory.arrays",
    "zeros_like": "nbmp.memory.likes",
}

_MODULES = ("context", "cuda", "pool", "process", "queue", "reductions")
"""Modules that users know by these names from `multiprocessing` and torch, and `cuda` of our own."""

_NUMPYS = (
    *("arange", "array", "asanyarray", "asarray", "ascontiguousarray", "asfortranarray", "concatenate", "copy", "eye"),
    *("frombuffer", "fromfunction", "fromiter", "geomspace", "identity", "linspace", "load", "logspace", "stack"),
)
"""Makers of arrays that NumPy has and nbmp has not."""

_SPECIAL = re.compile("__.*__").fullmatch

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"nbmp.{name}")
    home = _HOMES.get(name)
    if home is None:
        hint = f": nbmp.share_memory(np.{name}(...)) makes a shared array of NumPy's" if name in _NUMPYS else ""
        raise AttributeError(f"module 'nbmp' has no attribute {name!r}{hint}")
    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    if "IPython" in sys.modules:  # Tab tells what a name is only once it is loaded
        for name in (*_HOMES, *_MODULES):
            with suppress(ImportError):
                getattr(sys.modules[__name__], name)
    return sorted({*_HOMES, *_MODULES, *filter(_SPECIAL, globals())})
