"""What runs in the ranks of a soak. Importing it has the process answer `dumping`."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from tests.soak import dumping

dumping.answer()


class SimulationError(Exception):
    """Cannot be rebuilt from its arguments."""

    def __init__(self, step: int, reason: str) -> None:
        super().__init__(f"{reason} at step {step}")


class LockedError(Exception):
    """Cannot be pickled."""

    def __init__(self) -> None:
        super().__init__("has a lock")
        self.lock = threading.Lock()


def is_full(thing: Any, value: int) -> bool:
    """Return whether all that is in it is `value`."""
    if isinstance(thing, dict):
        return all(is_full(part, value) for part in thing.values())
    if isinstance(thing, np.ndarray):
        return bool((thing == np.array(value % 100).astype(thing.dtype)).all())
    return all(is_full(part, value) if isinstance(part, np.ndarray) else part == value % 100 for part in thing)


def check(rank: int, things: list[Any], seconds: float = 0.0) -> int:
    """Look at all of them; `things[i]` is full of i."""
    assert all(is_full(thing, i) for i, thing in enumerate(things)), things
    time.sleep(seconds)
    return rank


def fill(rank: int, array: Any) -> None:
    """Write this rank's part of a shared array."""
    array[rank] = rank + 1


def wait(rank: int, seconds: float = 600.0) -> None:
    time.sleep(seconds)


def wait_a_moment(rank: int) -> None:
    """End about when an interrupt of the soak comes."""
    time.sleep(0.05 * (rank + 1))


def wait_stubbornly(rank: int) -> None:
    """Take no notice of SIGTERM, nor of an interrupt."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    while True:
        try:
            time.sleep(600)
        except KeyboardInterrupt:
            continue


def compute(rank: int) -> None:
    while True:
        np.linalg.inv(np.random.rand(200, 200))


def lines_of(rank: int, lines: int) -> tuple[list[str], list[str]]:
    """Return what a rank that talks writes to stdout and to stderr."""
    texts = [f"{rank}:{line}:" + "x" * 60 for line in range(lines)]
    return [text for line, text in enumerate(texts) if line % 7] + ["tail"], texts[::7]


def talk(rank: int, lines: int) -> None:
    """Write lines of some length to both streams, and a last one without its end."""
    out, err = map(iter, lines_of(rank, lines))
    for line in range(lines):
        print(next(out if line % 7 else err), file=sys.stdout if line % 7 else sys.stderr)
    print(*out, end="")


def produce(rank: int, queue: Any, count: int, payload: Any) -> None:
    for index in range(count):
        number = index % len(payload)
        queue.put((rank, number, payload[number]))


def consume(rank: int, queue: Any, done: Any) -> None:
    """Take until told to leave; tell how many were good."""
    good = 0
    while (taken := queue.get()) is not None:
        good += is_full(taken[2], taken[1])
    done.put(good)


def pass_on(rank: int, source: Any, target: Any) -> None:
    while True:
        target.put(taken := source.get())
        if taken is None:
            return


def fail(rank: int, how: str, which: int, seconds: float) -> None:
    """Have rank `which` end badly; the others wait."""
    if rank != which:
        time.sleep(600)
    time.sleep(seconds)
    end_badly(how)


def end_badly(how: str) -> Any:
    endings: dict[str, Callable[[], Any]] = {
        "raise": lambda: 1 / 0,
        "raise odd": lambda: _raise(SimulationError(3, "diverged")),
        "raise locked": lambda: _raise(LockedError()),
        "exit": lambda: sys.exit(5),
        "_exit": lambda: os._exit(6),
        "kill": lambda: os.kill(os.getpid(), signal.SIGKILL),
        "segv": lambda: ctypes.string_at(0),
    }
    return endings[how]()


def _raise(error: Exception) -> None:
    raise error


def lock_result(rank: int) -> Any:
    """Return what cannot travel."""
    return threading.Lock()


def double(thing: Any) -> Any:
    return thing * 2


def sleepy_double(number: int) -> int:
    time.sleep(0.01)
    return number * 2


def maybe(number: int, bad: int, how: str) -> int:
    if number == bad:
        end_badly(how)
    return number
