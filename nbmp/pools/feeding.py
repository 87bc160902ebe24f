"""Cutting a call with many items into tasks and submitting them.

map                     in the calling thread, which waits anyway: a few tasks ahead, so that large items are copied
                        into shared memory as they are needed
map_async               in the calling thread, all at once: they are taken as they are now
imap, imap_unordered    in a thread of their own, a few tasks ahead: the items may have no end
"""

import contextvars
import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol

from nbmp import threads
from nbmp.pools.results import MapResult, Results
from nbmp.pools.tasks import Function, chunk_task
from nbmp.pools.workers import Workers

WINDOW = 4
"""Tasks for each worker that are submitted ahead, when they hold memory or descriptors."""
SMALL_WINDOW = 200
"""The same for tasks that are a few bytes."""


class _Fed(Protocol):
    def begin(self, index: int) -> bool: ...
    def waits_again(self, index: int) -> None: ...
    def done(self, index: int, value: Any) -> None: ...
    def failed(self, index: int, error: BaseException) -> None: ...
    def submitting(self) -> None: ...
    def wait_for_room(self, most: int) -> bool: ...


def feed_map(
    workers: Workers,
    result: MapResult,
    kind: int,
    function: Callable[..., Any],
    items: Iterable[Any],
    size: int,
    *,
    ahead: bool,
) -> None:
    """Submit all; with `ahead` a few at a time, else at once. What cannot be pickled fails the result."""
    workers.feed(1)
    try:
        _feed(workers, result, kind, Function(function), _chunks(items, size), ahead)
    except Exception as error:
        result.submitting()
        workers.tell(result.failed, -1, error)
    except BaseException as error:
        result.interrupted(error)
        raise
    finally:
        workers.feed(-1)
        result.complete()


def feed_results(
    workers: Workers, results: Results, kind: int, function: Callable[..., Any], items: Iterable[Any], size: int
) -> None:
    """Start a thread that submits all; the function is taken as it is now, the items as they are when they are taken.

    What cannot be pickled, or what `items` raises, is raised by the results when those before it have been.
    """
    try:
        travelling = Function(function)
    except Exception as error:
        results.complete(error)
        return
    chunks = _chunks(items, size)
    workers.feed(1)

    def run() -> None:
        error = None
        try:
            _feed(workers, results, kind, travelling, chunks, ahead=True)
        except BaseException as raised:
            error = raised
        results.complete(error)
        workers.feed(-1)

    threads.start(contextvars.copy_context().run, run, name="nbmp-pool-feeder")  # what `items` prints is the caller's


def _feed(workers: Workers, job: _Fed, kind: int, function: Function, chunks: Iterator[list[Any]], ahead: bool) -> None:
    most = WINDOW * workers.processes
    for index, chunk in enumerate(chunks):
        if ahead and not job.wait_for_room(most):
            return
        task = chunk_task(job, index, kind, function, chunk)
        most = (WINDOW if task.parcel.owners else SMALL_WINDOW) * workers.processes
        job.submitting()
        workers.submit(task)


def _chunks(items: Iterable[Any], size: int) -> Iterator[list[Any]]:
    iterator = iter(items)
    return iter(lambda: list(itertools.islice(iterator, size)), [])
