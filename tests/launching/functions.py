"""Functions for ranks that several tests use, and starting them without waiting."""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import nbmp
from tests.waiting import PATIENCE, tell, until


def begin(function: Callable[..., Any], args: tuple[Any, ...], nprocs: int, method: str) -> nbmp.ProcessContext:
    """Start ranks and return at once."""
    context = nbmp.start_processes(function, args, nprocs, join=False, start_method=method)
    assert context is not None
    return context


def pid(rank: int) -> int:
    return os.getpid()


def give(rank: int, value: Any) -> Any:
    return value


def say(rank: int, text: str) -> None:
    print(text)


def leave(rank: int, *code: Any) -> None:
    sys.exit(*code)


def leave_at_once(rank: int, code: int) -> None:
    os._exit(code)


def leave_by_raising(rank: int) -> None:
    raise SystemExit


def wait_for(rank: int, path: str) -> int:
    """Return when there is such a file."""
    assert until(lambda: os.path.exists(path)), f"no {path}"
    return rank


def first_ends_second_waits(rank: int, folder: str) -> str:
    if rank == 1:
        wait_for(rank, f"{folder}/go")
    return ("first", "second")[rank]


def count_up_to(rank: int, end: int) -> NDArray[np.int64]:
    return np.arange(end)


def words(rank: int, count: int) -> list[str]:
    return [f"word {index}" for index in range(count)]


def stay(rank: int, folder: str) -> None:
    """Tell its pid in a file named after the rank, and stay."""
    tell(Path(folder, f"pid{rank}"), os.getpid())
    time.sleep(PATIENCE * 3)


def stay_then_wait(rank: int, folder: str) -> int:
    """Tell its pid, and return when there is a file `go`."""
    tell(Path(folder, f"pid{rank}"), os.getpid())
    return wait_for(rank, f"{folder}/go")


def stay_whatever_is_asked(rank: int, folder: str) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    stay(rank, folder)


def settle() -> None:
    """Wait for the end of what ends a moment after the last rank, and of what only a cycle keeps."""
    until(lambda: not any(thread.name.startswith("nbmp") for thread in threading.enumerate()), 5)
    gc.collect()


class Pair:
    """What it was called with."""

    def __init__(self, rank: int, other: object) -> None:
        self.rank = rank
        self.other = other
