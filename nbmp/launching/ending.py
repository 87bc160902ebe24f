"""What is done at the end of a rank: what is the rank's, not that of the process that it was forked from.

Executors that nobody has shut down (of `concurrent.futures`; of loky, by which joblib and scikit-learn run `n_jobs`)
tell their workers to end in functions that they have registered with `threading`. An interpreter calls these before
`multiprocessing` waits for the processes that were started. A process of `multiprocessing` waits first, for workers
that nobody has told: for ever, or with loky for the five minutes that a worker may be idle. So a rank calls them when
its function is done.

loky keeps one executor for all calls of joblib. A fork has a copy of it, which accepts tasks that nobody would do: a
rank makes its own. So it does with `multiprocessing`'s fork server, by which executors start their workers from Python
3.14 on.
"""

import atexit
import multiprocessing.util  # here, before the fork, since `_bootstrap` needs it after
import sys
import threading
from collections.abc import Callable
from typing import Any

_KEPT = {
    "concurrent.futures.thread": "_threads_queues",
    "concurrent.futures.process": "_threads_wakeups",
    "joblib.externals.loky.process_executor": "_threads_wakeups",
    "loky.process_executor": "_threads_wakeups",
}
"""Modules of executors, and where they keep those that are to be told."""
_WITH_ONE_FOR_ALL = ("joblib.externals.loky.reusable_executor", "loky.reusable_executor")

_inherited: list[object] = []
"""Kept, since to let go of one would tell workers of the launching process to end."""


def forget_inherited() -> None:
    """In a fork: what the launching process does at its exit is not the rank's to do, nor are its pools to wait for."""
    atexit._clear()
    # What multiprocessing does at exit is the rank's to do (feeders, children); from Python 3.13 on it relies on this.
    atexit.register(multiprocessing.util._exit_function)  # type: ignore[attr-defined]
    for module, name in _KEPT.items():  # their threads were not copied; one may have become this rank's main thread
        getattr(sys.modules.get(module), name, {}).clear()
    for loky in filter(None, map(sys.modules.get, _WITH_ONE_FOR_ALL)):
        _inherited.append(getattr(loky, "_executor", None))
        vars(loky)["_executor"] = None
    server: Any = getattr(sys.modules.get("multiprocessing.forkserver"), "_forkserver", None)
    if server is not None:  # nobody's child here: to ask whether it runs is an error
        preload = server._preload_modules
        server.__init__()
        server._preload_modules = preload


def end_executors() -> None:
    """Have executors end their workers, and wait for these. What fails in that is printed, as at any exit."""
    calls: list[Callable[[], object]] = getattr(threading, "_threading_atexits", [])  # the latest last
    while calls:
        try:
            calls.pop()()
        except Exception:
            sys.excepthook(*sys.exc_info())
