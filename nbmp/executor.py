"""`concurrent.futures` on the workers of `nbmp.Pool`.

    with nbmp.ProcessPoolExecutor(4) as executor:
        futures = [executor.submit(fit, data) for data in arrays]

What differs from the standard library's: functions travel by value as they are when they are submitted, arrays in
shared memory; a worker that dies fails its own future with `WorkerExitedError` (no `BrokenProcessPool` for all) and is
replaced; leaving the `with` block by an interrupt, or interrupting `shutdown`, ends the workers.
"""

import atexit
import itertools
import os
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future
from concurrent.futures._base import PENDING, RUNNING
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from typing import Any

from nbmp.errors import BrokenPoolError
from nbmp.launching.interrupted import explain
from nbmp.launching.interrupts import held_back
from nbmp.launching.private import in_forked_child
from nbmp.pools.making import check, make_workers
from nbmp.pools.reloads import Reloads
from nbmp.pools.tasks import call_task
from nbmp.pools.workers import Workers


class BrokenExecutorError(BrokenPoolError, BrokenProcessPool):
    """A `BrokenPoolError` that those catch as well who expect the standard library's."""


class ProcessPoolExecutor(Executor):
    """Worker processes that are given calls; `concurrent.futures.ProcessPoolExecutor`.

    Parameters
    ----------
    max_workers : int, optional
        Number of workers, all started with the first call. None: the number of cores that this process may use.
    mp_context : multiprocessing context, optional
        Taken for its start method.
    initializer, initargs, max_tasks_per_child, start_method, threads
        As for `nbmp.Pool`.

    At exit the process waits for the futures that are not done. An executor that is let go does what it was given, and
    ends its workers then.
    """

    def __init__(
        self,
        max_workers: int | None = None,
        mp_context: Any = None,
        initializer: Callable[..., Any] | None = None,
        initargs: Iterable[Any] = (),
        *,
        max_tasks_per_child: int | None = None,
        start_method: str | None = None,
        threads: int | None = None,
    ) -> None:
        check(initializer, max_workers, max_tasks_per_child, ("max_workers", "max_tasks_per_child"))
        self._make = partial(
            make_workers,
            max_workers,
            initializer,
            tuple(initargs),
            max_tasks_per_child,
            start_method,
            mp_context,
            threads,
            daemon=False,
        )
        self._owner = os.getpid()
        self._lock = threading.RLock()  # a done-callback may come in while a call is submitted
        self._shut_down = False
        self._workers: Workers | None = None
        self._reloads = Reloads()
        self._futures: weakref.WeakSet[Future[Any]] = weakref.WeakSet()

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> "Future[Any]":
        """Have `fn(*args, **kwargs)` called in a worker, as function and arguments are now.

        What cannot be pickled is the future's exception, as `CannotTravelError`. A future can be cancelled until its
        call was given to a worker, which may be one call ahead, for a moment more if calls took next to no time.
        Done-callbacks are called by the pool's thread.

        Raises
        ------
        RuntimeError
            After `shutdown`, or in a forked child.
        BrokenPoolError
            When the workers cannot begin their work. It is a `BrokenProcessPool` as well.
        """
        with self._lock:
            workers = self._begin()
            future: Future[Any] = Future()
            job = _FutureJob(future)
            try:
                task = call_task(job, fn, args, kwargs)
            except Exception as error:
                workers.tell(job.failed, 0, error)
            else:
                self._futures.add(future)
                workers.submit(task)
        return future

    def map(
        self,
        fn: Callable[..., Any],
        *iterables: Iterable[Any],
        timeout: float | None = None,
        chunksize: int = 1,
        **more: Any,
    ) -> Iterator[Any]:
        """Return an iterator over `fn(*items)` for the items of the iterables, in order; `Executor.map`."""
        if chunksize < 1:
            raise ValueError("chunksize must be >= 1.")
        if chunksize == 1:
            return super().map(fn, *iterables, timeout=timeout, **more)
        items = zip(*iterables, strict=False)  # as map() does
        chunks: Iterator[list[Any]] = iter(lambda: list(itertools.islice(items, chunksize)), [])
        return itertools.chain.from_iterable(super().map(partial(_call_each, fn), chunks, timeout=timeout, **more))

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Take no further calls; with `wait`, return when all are done and the workers have ended.

        An interrupt meanwhile ends the workers at once.
        """
        with self._lock:
            self._shut_down = True
            workers = self._workers
        if workers is None or workers.owner != os.getpid():
            return
        if cancel_futures:
            self._cancel_all()
            workers.recall(self._cancel_all)  # and those that were given ahead
        workers.close()
        if wait and not workers.is_here():
            try:
                workers.join()
            except KeyboardInterrupt:
                self.terminate_workers()
                raise

    def _cancel_all(self) -> None:
        for future in list(self._futures):
            future.cancel()

    def terminate_workers(self) -> None:
        """End the workers now (SIGTERM, a second later SIGKILL); calls that are not done fail with RuntimeError."""
        with self._lock:
            self._shut_down = True
            workers = self._workers
        if workers is not None:
            workers.terminate()

    kill_workers = terminate_workers

    def __exit__(self, kind: Any, *_: Any) -> None:
        if kind is not None and issubclass(kind, KeyboardInterrupt):
            self.terminate_workers()
        self.shutdown(wait=True)

    def __reduce__(self) -> tuple[Any, ...]:
        raise NotImplementedError("executors cannot be passed between processes or pickled")

    def _begin(self) -> Workers:
        """Return the workers; start them the first time."""
        if os.getpid() != self._owner:
            raise RuntimeError(
                f"this executor belongs to process {self._owner}, which forked this one: make an executor here"
            )
        if self._shut_down:
            raise RuntimeError("cannot schedule new futures after shutdown")
        if self._workers is None:
            try:
                with held_back():  # an interrupt that comes meanwhile finds workers that somebody ends
                    self._workers = self._make()
                    weakref.finalize(self, _close, self._workers).atexit = False
                    _in_use.add(self._workers)
            except KeyboardInterrupt as press:
                they = "none of them runs" if self._workers is None else "they wait for calls, or for `shutdown`"
                explain(press, f"the executor was starting its workers: the call was not taken; {they}")
                raise
        elif self._reloads.happened():
            self._workers.renew()
        if self._workers.broken is not None:
            raise _as_broken(self._workers.broken)
        return self._workers


class _FutureJob:
    """Tells a future what became of its task."""

    def __init__(self, future: "Future[Any]") -> None:
        self._future = future

    def begin(self, index: int) -> bool:
        return self._future.set_running_or_notify_cancel()

    def waits_again(self, index: int) -> None:
        future: Any = self._future
        with future._condition:  # there is no public way back
            if future._state == RUNNING:
                future._state = PENDING

    def done(self, index: int, value: Any) -> None:
        self._future.set_result(value)

    def failed(self, index: int, error: BaseException) -> None:
        if self._future.running() or self._future.set_running_or_notify_cancel():
            self._future.set_exception(_as_broken(error) if isinstance(error, BrokenPoolError) else error)


def _as_broken(error: BrokenPoolError) -> BrokenExecutorError:
    broken = BrokenExecutorError(str(error))
    broken.__cause__ = error.__cause__
    return broken


def _call_each(function: Callable[..., Any], chunk: list[tuple[Any, ...]]) -> list[Any]:
    return [function(*items) for items in chunk]


_in_use: "weakref.WeakSet[Workers]" = weakref.WeakSet()


def _close(workers: Workers) -> None:
    """The executor was let go: end when all is done. Does not wait: it may be called from anywhere."""
    if workers.owner == os.getpid():
        workers.close()


def _wait_for_all() -> None:
    running = list(_in_use)
    for workers in running:
        workers.close()
    try:
        for workers in running:
            workers.join()
    except KeyboardInterrupt:
        for workers in running:
            workers.terminate()
        raise


atexit.register(_wait_for_all)  # before the workers are ended by `nbmp.pools.making`, which was imported earlier
in_forked_child(_in_use.clear)
