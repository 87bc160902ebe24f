"""Threads of other processes of ours: how they are, read from /proc, and a signal to a single one."""

import io
import os
import re
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

FUTEX = {"x86_64": "202", "aarch64": "98", "riscv64": "98", "ppc64le": "221", "s390x": "238"}
"""Number of the system call that a lock is waited for with, by machine."""

_STATUS = re.compile(
    rb"Name:\t([^\n]*).*?\nState:\t(\w).*?\nSigPnd:\t(\w+)\nShdPnd:\t(\w+)\nSigBlk:\t(\w+)\nSigIgn:\t\w+\nSigCgt:\t(\w+)"
    rb".*?\nvoluntary_ctxt_switches:\t(\d+)\nnonvoluntary_ctxt_switches:\t(\d+)",
    re.DOTALL,
)
"""A thread's `status`; its lines have been in this order since they are there."""


class ThreadStatus(NamedTuple):
    """A thread at one moment."""

    name: str
    """At most 15 bytes of it."""
    state: str
    """A letter: `R`unning, `S`leeping, `D` hanging in the kernel, s`T`opped, `t`raced, `Z`ombie, ..."""
    pending: int
    """Mask of the signals that wait for it; 1 << (n - 1) stands for signal n."""
    blocked: int
    """Those that it does not take now; one whose handler it runs is among them."""
    caught: int
    """Those that its process has handlers for."""
    switches: int
    """How often it has stopped running. The same as before: it has not run since."""


def threads_of(pid: int) -> list[int]:
    """Return the system's ids of the threads of a process, the main thread's (`pid`) first; empty when it is gone."""
    try:
        found = sorted(map(int, os.listdir(f"/proc/{pid}/task")))
    except OSError:
        return []
    return sorted(found, key=lambda thread: thread != pid)


def thread_status(pid: int, thread: int) -> ThreadStatus | None:
    """Return how a thread is, None when it is gone."""
    try:
        found = _STATUS.match(_read(f"/proc/{pid}/task/{thread}/status"))
    except OSError:
        return None
    if found is None:
        return None
    name, state, own, shared, blocked, caught, voluntary, other = found.groups()
    return ThreadStatus(
        name=name.decode(errors="replace"),
        state=state.decode(),
        pending=int(own, 16) | int(shared, 16),
        blocked=int(blocked, 16),
        caught=int(caught, 16),
        switches=int(voluntary) + int(other),
    )


def cpu_seconds(pid: int, thread: int) -> float:
    """Return how long a thread has run on a processor; 0 where the system does not say."""
    try:
        return int(_read(f"/proc/{pid}/task/{thread}/schedstat").split()[0]) / 1e9
    except (OSError, IndexError, ValueError):
        return 0.0


def waits_for_lock(pid: int, thread: int) -> bool:
    """Return whether a thread sleeps in the system call of locks; False too where the system does not say."""
    try:
        with open(f"/proc/{pid}/task/{thread}/syscall") as file:
            return file.read().split()[0] == FUTEX.get(os.uname().machine)
    except (OSError, IndexError):
        return False


def signal_thread(pid: int, thread: int, number: int) -> bool:
    """Send a signal to one thread of a process; return whether it is there."""
    return _tgkill()(pid, thread, number) == 0


def name_this_thread(name: str) -> None:
    """Give the calling thread a name that `thread_status` sees; the first 15 bytes of it."""
    fd = os.open("/proc/thread-self/comm", os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(fd, name.encode(errors="replace")[:15])
    finally:
        os.close(fd)


def _read(path: str) -> bytes:
    """Return what a small file says; a monitor reads many of them, and Python's `open` takes most of the time."""
    with io.FileIO(path) as file:
        return file.read(1 << 14) or b""


@cache
def _tgkill() -> Callable[[int, int, int], int]:
    """Return the C library's function, which Python has no name for; glibc has it since 2.30."""
    import ctypes

    found: Callable[[int, int, int], int] = ctypes.CDLL(None).tgkill
    return found
