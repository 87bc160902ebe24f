"""Systems that nbmp does not run on yet. Importing nbmp works there; starting a rank or sharing an array says so."""

import os
from typing import Any

from nbmp.errors import UnsupportedPlatformError
from nbmp.platforms.threads import ThreadStatus


def _refuse() -> UnsupportedPlatformError:
    return UnsupportedPlatformError(
        "nbmp starts ranks and shares arrays on Linux only so far; on Windows use it inside WSL 2, on macOS in a "
        "Linux container"
    )


def cpu_count() -> int:
    """Return the number of processors."""
    return os.cpu_count() or 1


def anonymous_file(name: str) -> int:
    raise _refuse()


def owner(fd: int) -> Any:
    raise _refuse()


def shared_memory_folder() -> str:
    raise _refuse()


def seal(fd: int, *, contents: bool = False) -> None:
    raise _refuse()


def available_memory() -> int | None:
    """Return None: not known."""
    return None


def exit_sentinel(pid: int) -> int:
    raise _refuse()


def grow_pipe(fd: int) -> None:
    """Do nothing."""


def oom_kills() -> int:
    """Return 0: not known."""
    return 0


def arm_lifeline(fd: int, group: int) -> None:
    raise _refuse()


def unsafe_to_fork() -> str | None:
    raise _refuse()


CUDA_LIBRARY = "nvcuda.dll"


def cuda_user() -> str | None:
    """Return None: there is no fork to be afraid of."""
    return None


def lost_to_fork() -> str | None:
    """Return None: nothing is forked."""
    return None


def visible_gpus() -> list[str]:
    raise _refuse()


def unreceived_bytes(fd: int) -> int:
    """Return how much memory the packets take that this socket sent and nobody received: not known here."""
    return 0


def waiting_bytes(fd: int) -> int:
    raise _refuse()


def name_this_thread(name: str) -> None:
    """Do nothing."""


def threads_of(pid: int) -> list[int]:
    raise _refuse()


def thread_status(pid: int, thread: int) -> ThreadStatus | None:
    raise _refuse()


def signal_thread(pid: int, thread: int, number: int) -> bool:
    raise _refuse()


def cpu_seconds(pid: int, thread: int) -> float:
    raise _refuse()


def waits_for_lock(pid: int, thread: int) -> bool:
    raise _refuse()
