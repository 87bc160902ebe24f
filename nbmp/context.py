"""Contexts: everything that a context of `multiprocessing` has, with our parts in place.

    ours      Process, Pool, Queue, JoinableQueue, SimpleQueue, Pipe, the start methods
    theirs    all else: locks, events, values, managers, ... Locks can travel to processes of every start method, and a
              rank that ends leaves word of those that it has, see `nbmp.locks`

The start method of a context is the one of what it starts; that of `default` is chosen by `set_start_method`.
"""

import multiprocessing.context
import os
from collections.abc import Callable, Iterable
from multiprocessing.util import Finalize
from typing import TYPE_CHECKING, Any, ClassVar

from nbmp.launching import default_method
from nbmp.launching.default_method import set_start_method as set_start_method
from nbmp.launching.methods.forkserver import set_preload
from nbmp.locks import locks
from nbmp.pipe import Connection
from nbmp.pipe import Pipe as make_pipe
from nbmp.platforms import cpu_count
from nbmp.pool import Pool as OurPool
from nbmp.process import ForkProcess, ForkServerProcess, Process, SpawnProcess
from nbmp.queue import JoinableQueue, Queue, SimpleQueue

if TYPE_CHECKING:
    from nbmp.managers import SyncManager


class Context(multiprocessing.context.BaseContext):
    """What every context has. `default` is the one without a start method of its own."""

    _name: str | None = None
    Process: ClassVar[Any] = Process
    Queue = Queue  # type: ignore[assignment]  # classes where the standard library has methods: called alike
    JoinableQueue = JoinableQueue  # type: ignore[assignment]
    SimpleQueue = SimpleQueue  # type: ignore[assignment]

    Lock = staticmethod(locks.Lock)
    RLock = staticmethod(locks.RLock)
    Condition = staticmethod(locks.Condition)
    Semaphore = staticmethod(locks.Semaphore)
    BoundedSemaphore = staticmethod(locks.BoundedSemaphore)
    Event = staticmethod(locks.Event)
    Barrier = staticmethod(locks.Barrier)
    Value: Any = staticmethod(locks.Value)
    Array: Any = staticmethod(locks.Array)

    def cpu_count(self) -> int:
        """Return how many cores this process may use."""
        return cpu_count()

    def Pipe(self, duplex: bool = True) -> tuple[Connection, Connection]:  # type: ignore[override]
        """See `nbmp.Pipe`."""
        return make_pipe(duplex)

    def Pool(  # type: ignore[override]
        self,
        processes: int | None = None,
        initializer: Callable[..., Any] | None = None,
        initargs: Iterable[Any] = (),
        maxtasksperchild: int | None = None,
    ) -> OurPool:
        """See `nbmp.Pool`."""
        return OurPool(processes, initializer, initargs, maxtasksperchild, context=self)

    def Manager(self) -> "SyncManager":
        """Return a running manager, as `multiprocessing.Manager`: its socket also where TMPDIR is too long for one."""
        import shutil

        from nbmp.managers import SyncManager

        folder = _folder_for_socket()
        manager = SyncManager(folder and f"{folder}/listener", ctx=self.get_context())
        if folder is not None:
            Finalize(manager, shutil.rmtree, (folder, True), exitpriority=-100)  # after its server has ended
        manager.start()
        return manager

    def set_forkserver_preload(self, module_names: list[str]) -> None:
        """Have these modules loaded in the fork server, once, instead of in each of its ranks that needs them."""
        set_preload(module_names)

    def get_context(self, method: str | None = None) -> Any:
        """Return the context of a start method; None: this one."""
        return self if method is None else get_context(method)

    def get_start_method(self, allow_none: bool = False) -> Any:
        return self._name or default_method.get_start_method(allow_none)

    def set_start_method(self, method: str | None, force: bool = False) -> None:
        if self._name is not None:
            raise ValueError("cannot set start method of concrete context")
        set_start_method(method, force)

    def get_all_start_methods(self) -> list[str]:
        return default_method.get_all_start_methods()

    def _check_available(self) -> None:
        pass


class ForkContext(Context):
    """Starts forks."""

    _name = "fork"
    Process = ForkProcess


class ForkServerContext(Context):
    """Starts forks of the fork server."""

    _name = "forkserver"
    Process = ForkServerProcess


class SpawnContext(Context):
    """Starts new interpreters. (`nbmp.SpawnContext` is torch's, which is something else.)"""

    _name = "spawn"
    Process = SpawnProcess


SOCKET_BYTES = 107
"""Of the path of a socket, at most."""
_OF_MULTIPROCESSING = "/pymp-12345678/listener-12345678"
"""What multiprocessing adds to the folder for temporary files."""


def _folder_for_socket() -> str | None:
    """Return a new folder for a socket; None when the one for temporary files is good for it."""
    import tempfile

    if len(os.fsencode(tempfile.gettempdir() + _OF_MULTIPROCESSING)) <= SOCKET_BYTES:
        return None
    return tempfile.mkdtemp(prefix="nbmp-", dir="/tmp")


default = Context()
_contexts: dict[str | None, Context] = {
    None: default,
    "fork": ForkContext(),
    "forkserver": ForkServerContext(),
    "spawn": SpawnContext(),
}


def get_context(method: str | None = None) -> Context:
    """Return the context of a start method: an object with all that `multiprocessing` has.

    None: the one whose start method is chosen at each start, see `nbmp.default_start_method`.

    Raises
    ------
    ValueError
        For an unknown method.
    """
    try:
        return _contexts[method]
    except KeyError:
        raise ValueError(
            f"cannot find context for {method!r}: it is one of {', '.join(default_method.METHODS)}"
        ) from None


Lock = default.Lock
RLock = default.RLock
Condition = default.Condition
Semaphore = default.Semaphore
BoundedSemaphore = default.BoundedSemaphore
Event = default.Event
Barrier = default.Barrier
Value: Any = default.Value
Array: Any = default.Array
Manager = default.Manager
set_forkserver_preload = default.set_forkserver_preload
