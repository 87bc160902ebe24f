"""What is waited for: the results of one call to a pool, with `multiprocessing`'s names and meanings.

All that is told of tasks changes in the pool's thread, which also calls the callbacks; whoever calls `get` waits for
its bell. An interrupt while a result is waited for stops the tasks of that call: their workers are killed and replaced,
and the pool goes on.
"""

from collections import deque
from collections.abc import Callable, Iterator
from itertools import chain
from multiprocessing import TimeoutError
from typing import Any

from nbmp.errors import WorkerExitedError
from nbmp.pools.waited import Waited
from nbmp.pools.workers import Workers

Callback = Callable[[Any], object]


class AsyncResult(Waited):
    """The result of `apply_async`, `map_async` or `starmap_async`."""

    def __init__(
        self, workers: Workers, owner: object, callback: Callback | None = None, error_callback: Callback | None = None
    ) -> None:
        super().__init__(workers, owner)
        self._callback = callback
        self._error_callback = error_callback
        self._value: Any = None
        self._error: BaseException | None = None

    def ready(self) -> bool:
        """Return whether the call is done."""
        return self._over

    def successful(self) -> bool:
        """Return whether it is done without an error; ValueError while it is not done."""
        if not self.ready():
            raise ValueError(f"{self!r} not ready")
        return self._error is None

    def wait(self, timeout: float | None = None) -> None:
        """Wait until it is done, at most `timeout` seconds."""
        self._wait(self.ready, timeout)

    def get(self, timeout: float | None = None) -> Any:
        """Return the result.

        Raises
        ------
        TimeoutError
            multiprocessing's, when it is not there after `timeout` seconds.
        KeyboardInterrupt
            When interrupted; the tasks of this call have been stopped, and the pool goes on.
        WorkerExitedError
            When the worker of a task was killed or has left.
        Exception
            What a task raised, with the worker's traceback as `__cause__`; a `ProcessRaisedException` when the
            exception cannot travel.
        """
        __tracebackhide__ = True  # what a notebook shows is the user's call
        try:
            self.wait(timeout)
        except KeyboardInterrupt as press:
            if not self.ready():
                self.interrupted(press)
            raise
        if not self.ready():
            raise TimeoutError
        if self._error is None:
            return self._value
        error = self._error
        del self  # the error refers to this frame, which would keep it, and with it the frames of the callers
        try:
            raise error.with_traceback(None)
        finally:
            del error

    def done(self, index: int, value: Any) -> None:
        self._finished += 1
        self._set(value, None)

    def failed(self, index: int, error: BaseException) -> None:
        self._finished += 1
        self._set(None, error)

    def end_with(self, error: BaseException) -> None:
        self._set(None, error)

    def _set(self, value: Any, error: BaseException | None) -> None:
        if self._over:
            return
        self._value, self._error = value, error
        self._end()
        callback = self._callback if error is None else self._error_callback
        self._callback = self._error_callback = None
        try:
            if callback is not None:
                self._workers.bells.ring()  # nobody waits for the user's code
                callback(value if error is None else error)
        finally:
            self._owner = None


class MapResult(AsyncResult):
    """The result of many tasks, in order.

    It is done when all tasks are, as in `multiprocessing`; its error is that of the task that failed first. A worker
    that dies ends it at once: the tasks that have not begun are dropped.
    """

    def __init__(
        self, workers: Workers, owner: object, callback: Callback | None = None, error_callback: Callback | None = None
    ) -> None:
        super().__init__(workers, owner, callback, error_callback)
        self._parts: dict[int, list[Any]] = {}
        self._first: BaseException | None = None
        self._complete = False

    def complete(self) -> None:
        """All tasks are submitted."""
        self._complete = True
        self._workers.tell(self._look)

    def done(self, index: int, value: Any) -> None:
        self._parts[index] = value
        self._count()
        self._look()

    def failed(self, index: int, error: BaseException) -> None:
        self._first = self._first or error
        self._count()
        if isinstance(error, WorkerExitedError):
            self.end_with(error)
            self._workers.drop(self)
        self._look()

    def _look(self) -> None:
        if self._over or not self._complete or self._unfinished:
            return
        value = list(chain.from_iterable(map(self._parts.__getitem__, sorted(self._parts))))
        self._parts = {}
        self._set(None if self._first else value, self._first)


class Results(Waited):
    """An iterator over the results of `imap`, in order, or of `imap_unordered`, as they come.

    A task that failed raises its error in its turn; what comes after it is still there. `next(timeout)` raises
    multiprocessing's TimeoutError when the next one is not there in time.
    """

    def __init__(self, workers: Workers, owner: object, *, ordered: bool) -> None:
        super().__init__(workers, owner)
        self._ordered = ordered
        self._outcomes: deque[tuple[Any, BaseException | None]] = deque()
        self._early: dict[int, list[tuple[Any, BaseException | None]]] = {}
        self._next_index = 0
        self._complete = False

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        __tracebackhide__ = True
        return self.next()

    def next(self, timeout: float | None = None) -> Any:
        """Return the next result."""
        __tracebackhide__ = True
        while True:
            try:
                there = self._wait(self._has_news, timeout)
            except KeyboardInterrupt as press:
                self.interrupted(press)
                raise
            if not there:
                raise TimeoutError
            try:
                value, error = self._outcomes.popleft()
                break
            except IndexError:  # another thread took it
                if self._exhausted() and not self._outcomes:
                    self._owner = None
                    raise StopIteration from None
        if error is None:
            return value
        try:
            raise error.with_traceback(None)
        finally:
            del error  # it refers to this frame, and so to its callers'

    def complete(self, error: BaseException | None = None) -> None:
        """All tasks are submitted; or the rest of them is not, because of an error."""
        self._workers.tell(self._completed, error)

    def _completed(self, error: BaseException | None) -> None:
        if error is not None and not self._over:
            self._early.setdefault(1 << 62, []).append((None, error))
        self._complete = True
        self._arrange()
        self._workers.bells.add(self._changed)

    def done(self, index: int, value: Any) -> None:
        self._arrived(index, [(item, None) for item in value])

    def failed(self, index: int, error: BaseException) -> None:
        self._arrived(index, [(None, error)])

    def end_with(self, error: BaseException) -> None:
        self._early.clear()
        self._owner = None
        self._end()

    def _has_news(self) -> bool:
        return bool(self._outcomes) or self._exhausted()

    def _exhausted(self) -> bool:
        return self._over or (self._complete and not self._unfinished and not self._early)

    def _arrived(self, index: int, outcomes: list[tuple[Any, BaseException | None]]) -> None:
        if self._over:
            return
        self._early[index] = outcomes
        self._count()
        self._arrange()
        self._workers.bells.add(self._changed)

    def _arrange(self) -> None:
        if not self._ordered:
            for outcomes in self._early.values():
                self._outcomes.extend(outcomes)
            self._early.clear()
        while self._next_index in self._early:
            self._deliver(self._next_index)
            self._next_index += 1
        if self._complete and not self._unfinished:
            for index in sorted(self._early):
                self._deliver(index)

    def _deliver(self, index: int) -> None:
        self._outcomes.extend(self._early[index])
        del self._early[index]  # only now: when nothing is here any more, all are there
