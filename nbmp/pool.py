"""A pool of worker processes: `multiprocessing.Pool`, with its names and meanings, for notebooks and arrays.

    with nbmp.Pool(4) as pool:
        squares = pool.map(square, arrays)

What differs from the standard library's:

- functions, and what they use of `__main__`, travel by value as they are when they are submitted: a function that was
  defined or changed after the pool was made is the one that runs. A reloaded module renews the workers;
- arrays travel in shared memory, results too;
- a worker that dies fails the task that it was running, is replaced, and the pool goes on;
- an initializer that raises breaks the pool, once;
- an interrupt while a result is waited for stops the tasks of that call; the pool goes on.
"""

import weakref
from collections.abc import Callable, Iterable
from typing import Any

from nbmp.launching.interrupts import held_back
from nbmp.launching.where.asking import SECONDS
from nbmp.launching.where.stacks import Stacks
from nbmp.pools.feeding import feed_map, feed_results
from nbmp.pools.making import check, end_for, let_go, make_workers
from nbmp.pools.messages import MAP, STARMAP
from nbmp.pools.reloads import Reloads
from nbmp.pools.results import AsyncResult, Callback, MapResult, Results
from nbmp.pools.tasks import call_task

END_SECONDS = 8.0
"""How long `terminate` waits for the end of the workers: SIGTERM, a second, SIGKILL, and what the system takes."""


class Pool:
    """Worker processes that are given tasks.

    Parameters
    ----------
    processes : int, optional
        Number of workers. None: the number of cores that this process may use.
    initializer, initargs
        Called in each worker before its first task, and in each that replaces one. What it assigns to globals stays
        for the tasks, whatever their values here. Inherited under fork, otherwise pickled once.
    maxtasksperchild : int, optional
        Tasks (chunks, for `map`) after which a worker is replaced.
    context : multiprocessing context, optional
        Taken for its start method.
    start_method : {"fork", "forkserver", "spawn"}, optional
        None: see `nbmp.default_start_method`.
    threads : int, optional
        BLAS and OpenMP threads of each worker. None: cores / workers, unless a variable such as OMP_NUM_THREADS is set.

    A pool that is neither closed nor terminated ends with its last reference, and with the process. A forked child's
    copy is inert: using it raises RuntimeError.

    Examples
    --------
    >>> with nbmp.Pool(2) as pool:
    ...     pool.map(lambda x: x * x, range(5))
    [0, 1, 4, 9, 16]
    """

    def __init__(
        self,
        processes: int | None = None,
        initializer: Callable[..., Any] | None = None,
        initargs: Iterable[Any] = (),
        maxtasksperchild: int | None = None,
        context: Any = None,
        *,
        start_method: str | None = None,
        threads: int | None = None,
    ) -> None:
        check(initializer, processes, maxtasksperchild, ("processes", "maxtasksperchild"))
        self._reloads = Reloads()
        try:
            with held_back():  # an interrupt that comes meanwhile finds workers that somebody ends
                self._workers = make_workers(
                    processes, initializer, initargs, maxtasksperchild, start_method, context, threads, daemon=True
                )
                self._finalizer = weakref.finalize(self, let_go, self._workers)
        except KeyboardInterrupt as press:
            end_for(press, vars(self).get("_workers"))

    def apply(self, func: Callable[..., Any], args: Iterable[Any] = (), kwds: dict[str, Any] | None = None) -> Any:
        """Return `func(*args, **kwds)`, called in a worker. Errors as for `AsyncResult.get`."""
        __tracebackhide__ = True
        self._begin()
        result = AsyncResult(self._workers, self)
        try:
            self._submit(result, func, args, kwds)
        except KeyboardInterrupt as press:
            result.interrupted(press)
            raise
        try:
            return result.get()
        finally:
            del result  # its error refers to this frame, and so to the caller's

    def apply_async(
        self,
        func: Callable[..., Any],
        args: Iterable[Any] = (),
        kwds: dict[str, Any] | None = None,
        callback: Callback | None = None,
        error_callback: Callback | None = None,
    ) -> AsyncResult:
        """Have `func(*args, **kwds)` called in a worker, as function and arguments are now.

        What cannot be pickled is raised by `AsyncResult.get`, as `CannotTravelError`. Callbacks are called by the
        pool's thread, which gives out no tasks meanwhile; what they raise is printed.
        """
        self._begin()
        result = AsyncResult(self._workers, self, callback, error_callback)
        self._submit(result, func, args, kwds)
        return result

    def _submit(
        self, result: AsyncResult, func: Callable[..., Any], args: Iterable[Any], kwds: dict[str, Any] | None
    ) -> None:
        try:
            task = call_task(result, func, tuple(args), kwds or {})
        except Exception as error:
            self._workers.tell(result.failed, 0, error)
        else:
            self._workers.submit(task)

    def map(self, func: Callable[[Any], Any], iterable: Iterable[Any], chunksize: int | None = None) -> list[Any]:
        """Return `[func(item) for item in iterable]`, computed by the workers in chunks of `chunksize`."""
        __tracebackhide__ = True
        return self._map(MAP, func, iterable, chunksize)

    def starmap(
        self, func: Callable[..., Any], iterable: Iterable[Iterable[Any]], chunksize: int | None = None
    ) -> list[Any]:
        """Return `[func(*item) for item in iterable]`; see `map`."""
        __tracebackhide__ = True
        return self._map(STARMAP, func, iterable, chunksize)

    def map_async(
        self,
        func: Callable[[Any], Any],
        iterable: Iterable[Any],
        chunksize: int | None = None,
        callback: Callback | None = None,
        error_callback: Callback | None = None,
    ) -> MapResult:
        """As `map`, without waiting: function and items are taken as they are now."""
        return self._map_async(MAP, func, iterable, chunksize, callback, error_callback)

    def starmap_async(
        self,
        func: Callable[..., Any],
        iterable: Iterable[Iterable[Any]],
        chunksize: int | None = None,
        callback: Callback | None = None,
        error_callback: Callback | None = None,
    ) -> MapResult:
        """As `starmap`, without waiting: function and items are taken as they are now."""
        return self._map_async(STARMAP, func, iterable, chunksize, callback, error_callback)

    def imap(self, func: Callable[[Any], Any], iterable: Iterable[Any], chunksize: int = 1) -> Results:
        """Return an iterator over the results, in order.

        Items are taken by a thread, a few ahead of the workers, so `iterable` may be endless.
        """
        return self._imap(func, iterable, chunksize, ordered=True)

    def imap_unordered(self, func: Callable[[Any], Any], iterable: Iterable[Any], chunksize: int = 1) -> Results:
        """As `imap`, in the order in which the results come."""
        return self._imap(func, iterable, chunksize, ordered=False)

    def stacks(self, workers: Iterable[int] | None = None, *, timeout: float = SECONDS) -> Stacks:
        """Return where the workers are at this moment; see `ProcessContext.stacks`."""
        return self._workers.stacks(workers, timeout=timeout)

    def close(self) -> None:
        """Take no further calls; the workers end when those that were made are done."""
        if not self._workers.closed:
            self._workers.close()

    def terminate(self) -> None:
        """End the workers now: SIGTERM, a second later SIGKILL. Calls that are not done fail with RuntimeError."""
        self._workers.assert_own()
        self._workers.terminate()
        if not self._workers.is_here():  # as it is in a callback
            self._workers.finished.wait(END_SECONDS)

    def join(self) -> None:
        """Wait until the workers have ended, after `close` or `terminate`; ValueError before."""
        self._workers.assert_own()
        if not self._workers.closed:
            raise ValueError("Pool is still running")
        if self._workers.is_here():
            raise RuntimeError("a callback cannot wait for the end of its pool: it would wait for itself")
        self._workers.join()

    def __enter__(self) -> "Pool":
        self._workers.assert_own()
        if self._workers.closed:
            raise ValueError("Pool not running")
        return self

    def __exit__(self, *_: object) -> None:
        self.terminate()

    def __reduce__(self) -> tuple[Any, ...]:
        raise NotImplementedError("pool objects cannot be passed between processes or pickled")

    def __repr__(self) -> str:
        workers = self._workers
        state = "broken" if workers.broken else "closed" if workers.closed else "running"
        return f"<nbmp.Pool of {workers.processes} workers, {state}>"

    def _begin(self) -> None:
        """Before a call: is there a pool, and do its workers have today's modules?"""
        self._workers.assert_own()
        if self._workers.broken is not None:
            raise self._workers.broken.with_traceback(None)
        if self._workers.closed:
            raise ValueError("Pool not running")
        if self._reloads.happened():
            self._workers.renew()

    def _map(self, kind: int, func: Callable[..., Any], iterable: Iterable[Any], chunksize: int | None) -> list[Any]:
        __tracebackhide__ = True
        self._begin()
        result = MapResult(self._workers, self)
        items = _sized(iterable)
        feed_map(self._workers, result, kind, func, items, self._size(items, chunksize), ahead=True)
        try:
            value: list[Any] = result.get()
            return value
        finally:
            del result  # as in `apply`

    def _map_async(
        self,
        kind: int,
        func: Callable[..., Any],
        iterable: Iterable[Any],
        chunksize: int | None,
        callback: Callback | None,
        error_callback: Callback | None,
    ) -> MapResult:
        self._begin()
        result = MapResult(self._workers, self, callback, error_callback)
        items = _sized(iterable)
        feed_map(self._workers, result, kind, func, items, self._size(items, chunksize), ahead=False)
        return result

    def _imap(self, func: Callable[[Any], Any], iterable: Iterable[Any], chunksize: int, *, ordered: bool) -> Results:
        self._begin()
        if chunksize < 1:
            raise ValueError(f"Chunksize must be 1+, not {chunksize:n}")
        results = Results(self._workers, self, ordered=ordered)
        feed_results(self._workers, results, MAP, func, iterable, chunksize)
        return results

    def _size(self, items: Any, chunksize: int | None) -> int:
        """Return the number of items in a task: four tasks for each worker, as in `multiprocessing`."""
        return chunksize or max(1, -(-len(items) // (self._workers.processes * 4)))


def _sized(iterable: Iterable[Any]) -> Any:
    return iterable if hasattr(iterable, "__len__") else list(iterable)
