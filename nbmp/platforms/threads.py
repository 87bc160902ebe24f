"""Threads of other processes of ours: how they are, read from /proc, and a signal to a single one."""

import os
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

FUTEX = {"x86_64": "202", "aarch64": "98", "riscv64": "98", "ppc64le": "221", "s390x": "238"}
"""Number of the system call that a lock is waited for with, by machine."""


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
        with open(f"/proc/{pid}/task/{thread}/status", "rb") as file:
            lines = file.read().decode(errors="replace").splitlines()
    except OSError:
        return None
    said = dict(line.split(":", 1) for line in lines if ":" in line)
    switches = (said.get(f"{kind}_ctxt_switches", "0") for kind in ("voluntary", "nonvoluntary"))
    return ThreadStatus(
        name=said["Name"].removeprefix("\t"),
        state=said["State"].split()[0],
        pending=_mask(said, "SigPnd") | _mask(said, "ShdPnd"),
        blocked=_mask(said, "SigBlk"),
        caught=_mask(said, "SigCgt"),
        switches=sum(map(int, switches)),
    )


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


def _mask(said: dict[str, str], name: str) -> int:
    return int(said.get(name, "0"), 16)


@cache
def _tgkill() -> Callable[[int, int, int], int]:
    """Return the C library's function, which Python has no name for; glibc has it since 2.30."""
    import ctypes

    found: Callable[[int, int, int], int] = ctypes.CDLL(None).tgkill
    return found
