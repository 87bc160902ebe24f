"""The standard library's resource tracker, when a rank starts one. Runs in the rank.

It unlinks the names of semaphores and shared memory that its starter left behind. A rank is killed with its process
group; a tracker in that group would die as well and leave the names. So it gets a session of its own. It ends with the
last process that has the other end of its pipe.
"""

from collections.abc import Sequence
from multiprocessing import util
from typing import TYPE_CHECKING, Any

from nbmp.launching.onimport import when_imported

if TYPE_CHECKING:
    import subprocess

TRACKER = "multiprocessing.resource_tracker"

_started: "list[subprocess.Popen[bytes]]" = []
"""Kept: nobody waits for them."""


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
        _started.append(popen)
        return popen.pid
