"""Functions for workers that several tests use."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.waiting import PATIENCE, tell, until

Array = NDArray[np.float64]


def square(x: Any) -> Any:
    return x * x


def add(a: int, b: int = 0) -> int:
    return a + b


def pid(_: object = None) -> int:
    return os.getpid()


def doubled(array: Array) -> Array:
    return array * 2


def write_into(array: Array, value: float) -> None:
    array[...] = value


def fail_at(x: int, bad: int) -> int:
    if x == bad:
        raise ValueError(f"no {x}")
    return x


def fail_at_two(x: int) -> int:
    return fail_at(x, 2)


def die(how: str) -> str:
    """End this worker in one of many ways, or return `how`."""
    match how:
        case "exit":
            os._exit(3)
        case "leave":
            os._exit(0)
        case "SIGKILL":
            os.kill(os.getpid(), signal.SIGKILL)
        case "SIGSEGV":
            ctypes.string_at(0)
        case "sys.exit":
            sys.exit(4)
        case "sys.exit()":
            sys.exit()
        case "interrupt":
            raise KeyboardInterrupt
    return how


def stay(path: str) -> None:
    """Tell the pid in a file, and stay."""
    tell(path, os.getpid())
    time.sleep(PATIENCE * 3)


def stay_whatever_is_asked(path: str) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    stay(path)


def wait_for(path: str) -> str:
    """Return when there is such a file."""
    assert until(lambda: os.path.exists(path)), f"no {path}"
    return path


def make(path: str) -> str:
    Path(path).touch()
    return path


def stay_or_make(paths: tuple[str, str]) -> str:
    """Wait for the first file, if there is a name, then make the second."""
    if paths[0]:
        wait_for(paths[0])
    return make(paths[1])


class Trap:
    """Cannot be unpickled."""

    def __reduce__(self) -> tuple[Any, ...]:
        return int, ("not a number",)


class Called(Trap):
    """A function that cannot be unpickled."""

    def __call__(self, _: object) -> None: ...


class OneWay:
    """Cannot be pickled."""

    def __reduce__(self) -> tuple[Any, ...]:
        raise TypeError("this one stays")


def give_trap(_: object) -> Trap:
    return Trap()


def give_lambda_of_lock(_: object) -> Any:
    return OneWay()


class SimError(Exception):
    def __init__(self, step: int, reason: str) -> None:
        super().__init__(f"{reason} at step {step}")


class Locky(Exception):
    def __init__(self) -> None:
        super().__init__("has a lock")
        self.one_way = OneWay()


def boom(x: int) -> None:
    if x == 2:
        raise Locky
    if x == 3:

        class Local(Exception):
            pass

        raise Local("local class")
    raise SimError(x, "diverged")


state: dict[str, Any] = {}


def set_up(key: str, value: Any) -> None:
    state[key] = value


def look_up(key: str) -> Any:
    return state[key]


def fail_to_set_up(path: str) -> None:
    with open(path, "a") as file:
        file.write("x")
    raise RuntimeError("no model here")


def count_up(_: object) -> tuple[int, int]:
    """Return this worker's pid and how often it was called."""
    state["calls"] = state.get("calls", 0) + 1
    return os.getpid(), state["calls"]
