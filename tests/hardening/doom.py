"""How things go wrong: what the cells of the failure matrix have happen, wherever they have it happen.

Files in the current folder, which is the test's own: `reached` says that something hangs, `release` ends it, `first`
has the pid of rank 0.
"""

from __future__ import annotations

import atexit
import ctypes
import importlib
import multiprocessing
import os
import resource
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

from tests.waiting import content, is_running, tell, until

ROOM = 32 << 20
"""Bytes that are left when memory gets a limit."""
REACHED, RELEASE, FIRST = "reached", "release", "first"


class StuckError(Exception):
    """An exception that cannot travel."""

    def __init__(self) -> None:
        super().__init__("the stuck reason")
        self.lock = threading.Lock()


def happen(how: str) -> None:
    match how:
        case "exception":
            raise ValueError("the reason")
        case "exception that cannot travel":
            raise StuckError
        case "sys.exit":
            sys.exit(3)
        case "os._exit":
            os._exit(3)
        case "SIGKILL":
            os.kill(os.getpid(), signal.SIGKILL)
        case "SIGSEGV":
            ctypes.string_at(0)
        case "out of memory":
            hoard()
        case "hang":
            hang()
        case _:
            raise AssertionError(how)


def hoard() -> None:
    """Take all memory that a limit leaves. What was taken is kept as long as the exception; a rank's limit stays."""
    limits = resource.getrlimit(resource.RLIMIT_AS)
    with open("/proc/self/statm") as file:
        size = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (size + ROOM, limits[1]))
    hoarded = []
    try:
        while True:
            hoarded.append(bytearray(100_000))
    finally:
        if not is_rank():
            resource.setrlimit(resource.RLIMIT_AS, limits)


def hang() -> None:
    release = os.path.abspath(RELEASE)  # a thread of the test's process may be late: the test has left the folder
    tell(REACHED, os.getpid())
    while not os.path.exists(release):
        time.sleep(0.01)


def is_rank() -> bool:
    return multiprocessing.parent_process() is not None


def spring(how: str) -> str:
    """Have it happen, in rank 1 of a launch, in any worker, in the launching process."""
    if os.environ.get("RANK", "1") == "1":
        happen(how)
    return "ok"


class Trap:
    """Something happens when it is pickled, or when it is unpickled."""

    def __init__(self, how: str, when: str) -> None:
        self.how = how
        self.when = when

    def __reduce__(self) -> tuple[Any, ...]:
        if self.when == "unpickled":
            return spring, (self.how,)
        spring(self.how)
        return str, ("ok",)


def do(where: str, how: str) -> Any:
    """Have it happen in this rank or worker, or when its result is read, or when it ends."""
    if is_rank():  # a fork of pytest's has inherited hooks that keep to themselves what should be written
        threading.excepthook, sys.unraisablehook = threading.__excepthook__, sys.__unraisablehook__
    match where:
        case "importing":
            importlib.import_module(module_name(how))
        case "running":
            happen(how)
        case "in a thread of the rank":
            thread = threading.Thread(target=happen, args=(how,))
            thread.start()
            if how != "hang":
                thread.join()
        case "pickling the result":
            return Trap(how, "pickled")
        case "unpickling the result":
            return Trap(how, "unpickled")
        case "at exit":
            atexit.register(happen, how)
    return "ok"


def work(rank: int, where: str, how: str, trap: object = None) -> Any:
    if rank == 0:
        tell(FIRST, os.getpid())
        return "ok"
    if how == "hang" and where in ("at exit", "in a thread of the rank"):  # whoever is interrupted waits for it alone
        assert until(lambda: not is_running(int(content(Path(FIRST), 20))), 20)
    return do(where, how)


def task(where: str, how: str, trap: object = None) -> Any:
    """As `work`, for a pool."""
    return do(where, how)


def module_name(how: str) -> str:
    return "doomed_" + "".join(filter(str.isalnum, how))


def write_module(how: str) -> str:
    """Write a module that does it when it is imported in a rank; return its name."""
    name = module_name(how)
    with open(f"{name}.py", "w") as file:
        file.write(
            "from tests.hardening.doom import is_rank, spring\n"
            f"if is_rank():\n    spring({how!r})\n"
            "def function(rank=0):\n    return 'ok'\n"
        )
    return name
