"""Making the workers of a pool, and what becomes of them when nobody ended them.

the pool object is let go        `terminate`, by its finalizer, without waiting
the process exits normally       the same; then a moment is waited for their end
the process ends in another way  their lifelines
"""

import atexit
import os
from collections.abc import Callable, Iterable
from typing import Any, NoReturn, SupportsIndex

from nbmp import platforms
from nbmp.launching import registry
from nbmp.launching.frontends import current
from nbmp.launching.interrupted import explain
from nbmp.launching.interrupts import held_back
from nbmp.pools.messages import Initializer
from nbmp.pools.starting import Recipe
from nbmp.pools.workers import Workers

EXIT_SECONDS = 5.0
"""How long to wait for the end of terminated workers."""


def make_workers(
    processes: int | None,
    initializer: Callable[..., Any] | None,
    initargs: Iterable[Any],
    tasks_per_worker: int | None,
    start_method: str | None,
    context: Any,
    threads: int | None,
    *,
    daemon: bool,
) -> Workers:
    """Start the workers of a pool and the thread that follows them."""
    frontend = current()
    recipe = Recipe(
        platforms.cpu_count() if processes is None else processes,
        Initializer(initializer, tuple(initargs)),
        method_of(context) if start_method is None else start_method,
        threads,
        daemon,
        frontend,
    )
    with held_back():
        workers = Workers(recipe, frontend, tasks_per_worker)
        workers.begin()
        registry.enter(workers)
        recipe.entered(workers.number)
    return workers


def end_for(press: KeyboardInterrupt, workers: Workers | None) -> NoReturn:
    """An interrupt came while these were started, None: before any was: end them, and have it say so."""
    with held_back():  # one more is told of by this one
        became = "none of them runs" if workers is None else workers.halt(0)
        explain(press, f"the pool was being started: {became}")
        raise press


def check(initializer: Any, processes: int | None, tasks_per_worker: Any, names: tuple[str, str]) -> None:
    """Raise what the standard library raises for these arguments; `names` is what it calls the two numbers."""
    if processes is not None and not isinstance(processes, SupportsIndex):
        raise TypeError(f"{names[0]} must be a whole number, not {type(processes).__name__}")
    if processes is not None and processes < 1:
        raise ValueError(f"{names[0]} must be at least 1: {processes}")
    if initializer is not None and not callable(initializer):
        raise TypeError("initializer must be a callable")
    if tasks_per_worker is not None and (not isinstance(tasks_per_worker, int) or tasks_per_worker <= 0):
        raise ValueError(f"{names[1]} must be a positive int or None: {tasks_per_worker!r}")


def method_of(context: Any) -> str | None:
    """Return the start method that a context of multiprocessing's, or of ours, stands for; None: no choice made."""
    if context is None:
        return None
    found: str | None = context.get_start_method(allow_none=True)
    return found


def let_go(workers: Workers) -> None:
    """End workers that nobody can give tasks any more. Does not wait: it may be called from anywhere."""
    if workers.owner == os.getpid():
        workers.terminate()


def _end_all() -> None:
    running = registry.running_of(Workers)
    for workers in running:
        workers.terminate()
    for workers in running:
        workers.finished.wait(EXIT_SECONDS)


atexit.register(_end_all)
