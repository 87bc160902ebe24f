"""A task: something that one worker does in one go, already pickled. Made in the thread that submits it."""

import itertools
from collections.abc import Callable
from typing import Any, Protocol

from nbmp.pickling.parcel import Parcel
from nbmp.pickling.quick import snapshot
from nbmp.pools.messages import CALL, Call, Chunk

_numbers = itertools.count()


class Job(Protocol):
    """What waits for tasks. Its methods are called by the pool's thread, once for each task."""

    def begin(self, index: int) -> bool:
        """A worker is about to be given task `index`; False: it is not wanted any more."""

    def waits_again(self, index: int) -> None:
        """Task `index` was taken back from a worker that had not begun it, and will be given to one again."""

    def done(self, index: int, value: Any) -> None:
        """Task `index` has returned `value`."""

    def failed(self, index: int, error: BaseException) -> None:
        """Task `index` has failed."""


class Function:
    """The function of one call with many items: pickled once, as it is now, sent once to each worker that needs it."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.number = next(_numbers)
        self.parcel = snapshot(function, name="function", recycled=False)


class Task:
    """One task on its way: waiting, given to a worker, or done."""

    __slots__ = ("function", "given_at", "index", "job", "kind", "number", "parcel", "sent_as")

    def __init__(self, job: Job, index: int, kind: int, parcel: Parcel, function: Function | None = None) -> None:
        self.job = job
        self.index = index
        self.kind = kind
        self.parcel = parcel
        self.function = function
        self.number = 0
        """Given by the pool in the order of submission."""
        self.given_at = 0.0
        self.sent_as = -1


def call_task(job: Job, function: Callable[..., Any], args: tuple[Any, ...], kwds: dict[str, Any]) -> Task:
    """Return the task of one call, as function and arguments are now. CannotTravelError says what cannot be pickled."""
    return Task(job, 0, CALL, snapshot((function, args, kwds), name="", fields=Call))


def chunk_task(job: Job, index: int, kind: int, function: Function, items: list[Any]) -> Task:
    """Return the task of some items, as they are now. Errors as for `call_task`."""
    return Task(job, index, kind, snapshot((function.number, items), name="", fields=Chunk), function)
