"""What is done at the end of a rank: what is the rank's, not that of the process that it was forked from.

Executors that nobody has shut down (of `concurrent.futures`; of loky, by which joblib and scikit-learn run `n_jobs`)
tell their workers to end in functions that they have registered with `threading`. An interpreter calls these before
`multiprocessing` waits for the processes that were started. A process of `multiprocessing` waits first, for workers
that nobody has told: for ever, or with loky for the five minutes that a worker may be idle. So a rank calls them when
its function is done.

loky keeps one executor for all calls of joblib. A fork has a copy of it, which accepts tasks that nobody would do: a
rank makes its own.
"""

import atexit
import multiprocessing.util  # here, before the fork, since `_bootstrap` needs it after
import sys
import threading
from collections.abc import Callable
from typing import Any

_KEPT = ("_threads_queues", "_threads_wakeups")
"""Where modules of executors keep those that are to be told."""
_WITH_ONE_FOR_ALL = ("joblib.externals.loky.reusable_executor", "loky.reusable_executor")

_inherited: list[object] = []
"""Kept, since to let go of one would tell workers of the launching process to end."""


def forget_inherited() -> None:
    """In a fork: what the launching process does at its exit is not the rank's to do, nor are its pools to wait for."""
    atexit._clear()
    # What multiprocessing does at exit is the rank's to do (feeders, children); from Python 3.13 on it relies on this.
    atexit.register(multiprocessing.util._exit_function)  # type: ignore[attr-defined]
    for call in _registered():  # their threads were not copied; one of them may have become this rank's main thread
        names: dict[str, Any] = getattr(getattr(call, "func", None), "__globals__", {})
        for name in _KEPT:
            if name in names:
                names[name].clear()
    for module in filter(None, map(sys.modules.get, _WITH_ONE_FOR_ALL)):
        _inherited.append(getattr(module, "_executor", None))
        vars(module)["_executor"] = None


def end_executors() -> None:
    """Have executors end their workers, and wait for these."""
    calls = _registered()
    while calls:
        calls.pop()()


def _registered() -> list[Callable[[], object]]:
    """Return threading's own list, the latest last; empty where there is none."""
    found: list[Callable[[], object]] = getattr(threading, "_threading_atexits", [])
    return found
