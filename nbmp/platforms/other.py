"""Systems that nbmp does not run on yet. Importing nbmp works there; starting a rank or sharing an array says so."""

import os
from typing import Any

from nbmp.errors import UnsupportedPlatformError


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


def waiting_bytes(fd: int) -> int:
    raise _refuse()
