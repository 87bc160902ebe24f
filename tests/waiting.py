"""Waiting for a condition, and looking at processes from outside."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from pathlib import Path

PATIENCE = 20.0


def until(condition: Callable[[], object], seconds: float = PATIENCE) -> bool:
    """Return whether `condition()` came true within `seconds`."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.005)
    return True


def content(path: Path, seconds: float = PATIENCE) -> str:
    """Return what somebody else writes to `path`, as soon as there is something."""
    assert until(lambda: path.exists() and path.stat().st_size, seconds), f"nobody wrote {path}"
    return path.read_text()


def tell(path: Path | str, text: object) -> None:
    """Write a file that appears whole."""
    temporary = f"{path}.{os.getpid()}"
    Path(temporary).write_text(str(text))
    os.rename(temporary, path)


def is_running(pid: int) -> bool:
    """Return whether the process is there and not a zombie."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rpartition(")")[2].split()[0] not in ("Z", "X")


def none_runs(pids: Iterable[int]) -> bool:
    return not any(map(is_running, pids))
