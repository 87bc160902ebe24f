"""The standard library's resource tracker: it unlinks names of semaphores and shared memory that are left behind.

A process that opens shared memory by its name has its tracker unlink it, at the end of that process, if it was not
closed by `unlink` before: also what it did not make. So ranks have the one of the launching process for that, as
processes of the standard library's have; a fork inherits it anyway.

    launching process   its tracker, running before the ranks are started if they may need it
    rank                names of shared memory      are told to that one, if there is one
                        names of semaphores         to a tracker of its own: they end with whoever made them

Ranks and kernels are killed with their process group; a tracker in that group would die as well and leave the names. So
it gets a session of its own. It ends with the last process that has the other end of its pipe.
"""

import contextlib
import os
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from multiprocessing import util
from typing import Any

from nbmp.launching.onimport import when_imported

TRACKER = "multiprocessing.resource_tracker"

SHARED_MEMORY = "multiprocessing.shared_memory"


def running() -> int | None:
    """Return the descriptor that leads to the tracker that ranks are to use, None when they need none.

    In a launching process.
    """
    if _shared is not None:
        return _shared
    if SHARED_MEMORY in sys.modules:
        with contextlib.suppress(OSError):
            import_module(TRACKER).ensure_running()
    tracker = sys.modules.get(TRACKER)
    return None if tracker is None else tracker._resource_tracker._fd


_shared: int | None = None


def share(fd: int) -> None:
    """Tell names of shared memory to the tracker that this leads to. In a rank."""
    global _shared
    _shared = fd
    when_imported(TRACKER, lambda: _divide(sys.modules[TRACKER]._resource_tracker, fd))


def _divide(own: Any, fd: int) -> None:
    to_own: Callable[[str, str, str], None] = own._send

    def send(what: str, name: str, kind: str) -> None:
        if kind == "shared_memory":
            with contextlib.suppress(OSError):  # it was killed, by whoever
                os.write(fd, f"{what}:{name}:{kind}\n".encode("ascii"))
                return
        to_own(what, name, kind)

    own._send = send


def keep_apart() -> None:
    """Have a tracker that is started from here on live outside this process' group."""
    when_imported(TRACKER, _replace_util)


def _replace_util() -> None:
    from multiprocessing import resource_tracker

    resource_tracker.util = _Util()  # type: ignore[attr-defined]  # the module that it starts processes with


class _Util:
    """`multiprocessing.util` with another way to start a program."""

    def __getattr__(self, name: str) -> Any:
        return getattr(util, name)

    def spawnv_passfds(self, path: Any, args: Sequence[Any], passfds: Sequence[int]) -> int:
        import subprocess

        popen = subprocess.Popen(args, executable=path, pass_fds=passfds, start_new_session=True)
        popen.returncode = 0  # not to be waited for here, nor warned of: it outlives this process
        return popen.pid
