"""Linux: memfd, pidfd, SIGIO lifeline, cgroups. Needs kernel 5.3 (pidfd_open)."""

import array
import contextlib
import fcntl
import os
import select
import signal
import sys
import termios
from functools import partial

from nbmp.errors import UnsupportedPlatformError
from nbmp.platforms.cgroups import cgroup_cpu_limit, cgroup_memory_left, cgroup_oom_kills
from nbmp.platforms.files import content
from nbmp.platforms.gpu import cuda_user
from nbmp.platforms.processmap import mapped_libraries, thread_inside

PIPE_BYTES = 1 << 20
"""Room in an output pipe: a rank goes on writing while the launcher's interpreter is busy in C code."""


def cpu_count() -> int:
    """Return how many cores this process may use: affinity mask, and cgroup quota rounded up. At least 1."""
    cores = len(os.sched_getaffinity(0))
    limit = cgroup_cpu_limit()
    return max(1, min(cores, limit) if limit is not None else cores)


anonymous_file = partial(os.memfd_create, flags=os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
"""`anonymous_file(name)` returns a descriptor of a new memory file: close-on-exec, nameless, gone with its last user.

No Python function, for the reason given at `owner`.
"""

owner = select.epoll.fromfd
"""`owner(fd)` returns an object that owns `fd`: has `fileno()` and `close()`, and closes it when nothing refers to it.

An object written in C that closes a descriptor, of whatever kind, without a word (a file or socket object warns).
Python code in a `__del__` would now and then swallow a KeyboardInterrupt: a press of the stop button that is lost. And
itself no Python function: between making a descriptor and owning it there must be no place for one.
"""


SHARED_MEMORY = "/dev/shm"


def shared_memory_folder() -> str:
    """Return the folder whose files are memory; UnsupportedPlatformError when segments cannot have names there."""
    if not (os.path.isdir(SHARED_MEMORY) and os.access(SHARED_MEMORY, os.W_OK | os.X_OK)):
        raise UnsupportedPlatformError(
            f"the sharing strategy 'file_system' needs the folder {SHARED_MEMORY}, which is not there or may not be "
            "written to by this process; use 'file_descriptor', which does not need it"
        )
    return SHARED_MEMORY


def seal(fd: int, *, contents: bool = False) -> None:
    """Fix the size of a memory file for good, so that no access inside it can fault; with `contents` also its bytes."""
    seals = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL
    if contents:
        seals |= fcntl.F_SEAL_WRITE
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, seals)


def available_memory() -> int | None:
    """Return how many bytes can be taken before the out-of-memory killer comes: of machine and cgroup, the less."""
    left = cgroup_memory_left()
    for line in content("/proc/meminfo").splitlines():
        if line.startswith(b"MemAvailable:"):
            machine = int(line.split()[1]) * 1024
            return machine if left is None else min(machine, left)
    return left


def oom_kills() -> int:
    """Return how often the out-of-memory killer has struck in this process' cgroup; 0 where that cannot be read."""
    return cgroup_oom_kills()


def exit_sentinel(pid: int) -> int:
    """Return a descriptor that becomes readable when the child `pid` has exited (a pidfd, close-on-exec)."""
    return os.pidfd_open(pid)


def grow_pipe(fd: int) -> None:
    """Give a pipe room for `PIPE_BYTES` if the system allows it."""
    with contextlib.suppress(OSError):  # per-user limit reached: the default size works as well, only sooner full
        fcntl.fcntl(fd, fcntl.F_SETPIPE_SZ, PIPE_BYTES)


def waiting_bytes(fd: int) -> int:
    """Return how many bytes can be read from a pipe now."""
    count = array.array("i", [0])
    fcntl.ioctl(fd, termios.FIONREAD, count)
    return count[0]


def unreceived_bytes(fd: int) -> int:
    """Return how much memory the packets take that this socket sent and nobody received: 768 bytes or more each."""
    count = array.array("i", [0])
    fcntl.ioctl(fd, termios.TIOCOUTQ, count)
    return count[0]


F_SETSIG = 10  # asm-generic/fcntl.h; the fcntl module does not have it


def arm_lifeline(fd: int, group: int) -> None:
    """Have the kernel kill process group `group` (SIGKILL) as soon as the write end of the pipe `fd` is closed.

    Works whatever this process is doing: with the interpreter lock held in C code, with every other signal ignored.
    `fd` must be the only one of its open file description, since the owner of the signal belongs to the description.
    If the write end is closed already the group is killed here.
    """
    fcntl.fcntl(fd, F_SETSIG, signal.SIGKILL)
    fcntl.fcntl(fd, fcntl.F_SETOWN, -group)
    fcntl.fcntl(fd, fcntl.F_SETFL, fcntl.fcntl(fd, fcntl.F_GETFL) | os.O_ASYNC | os.O_NONBLOCK)
    watch = select.poll()
    watch.register(fd, 0)  # POLLHUP is always reported
    if watch.poll(0):  # hung up before it was armed: nobody would send the signal
        os.killpg(group, signal.SIGKILL)


def unsafe_to_fork() -> str | None:
    """Return why a fork of this process may hang or break its child, None when nothing is known against it.

    CUDA: nothing of it survives a fork (see `nbmp.platforms.gpu`). libgomp: a child that enters a parallel region waits
    for pool threads that the fork did not copy (LLVM's and Intel's OpenMP reset themselves, OpenBLAS too). Nothing is
    initialised by asking.
    """
    by = cuda_user()
    if by is not None:
        return f"CUDA is initialised in this process (by {by}), and a CUDA context does not survive a fork"
    gomp = mapped_libraries("libgomp", len(sys.modules))
    if gomp and thread_inside(gomp):
        return "an OpenMP thread pool (libgomp) is alive in this process, and a forked rank that uses it would hang"
    return None
