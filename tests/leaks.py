"""What a test may not leave behind: child processes, descriptors, names in /dev/shm, threads of nbmp.

`Holdings.now()` looks only at this process and its own descendants, and only reads: nothing is killed, closed
or unlinked here. `leftovers` compares two looks and waits a while, since a process that was told to end and a
thread that was told to stop take a moment.

Of the names in /dev/shm those count that are in the folder of this process' own session, which itself lives on purpose.
Folders of sessions that are over are removed by their managers in their own time, and may be of another run of the
tests: tests/memory/test_manager.py looks at its own. Any other name that begins with "nbmp" counts.

A helper that lives on purpose (a fork server, a resource tracker, a manager) is no leak, in this process or in a kernel
that a test keeps. It is known by its command line. What it has forked shows the same command line, but under
a parent that shows it too: that is a rank, and a leak like any other. This process' descriptors that lead to
a helper are named by the functions in `HELPER_DESCRIPTORS`.
"""

from __future__ import annotations

import contextlib
import gc
import os
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from multiprocessing import forkserver, resource_tracker
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

if TYPE_CHECKING:
    from nbmp.memory.session import Session

KINDS = ("children", "descriptors", "names", "threads")
PATIENCE = 5.0  # seconds until what is still there counts as left behind
SHM = Path("/dev/shm")


HELPER_COMMANDS = (
    "from nbmp.launching.server import serve",
    "from multiprocessing.forkserver import main",
    "from multiprocessing.resource_tracker import main",
    "nbmp/memory/manager.py /dev/shm/",
)


def to_standard_helpers() -> set[int | None]:
    """Return what leads to multiprocessing's own fork server and resource tracker."""
    server, tracker = forkserver._forkserver, resource_tracker._resource_tracker
    return {getattr(server, "_forkserver_alive_fd", None), getattr(tracker, "_fd", None)}


def to_fork_server() -> set[int | None]:
    """Return what leads to nbmp's fork server."""
    module = sys.modules.get("nbmp.launching.methods.forkserver")
    server = getattr(module, "_server", None)
    return {server.channel.fileno()} if server else set()


def to_standard_heap() -> set[int | None]:
    """Return what leads to the memory that multiprocessing keeps for its shared values.

    That is two descriptors of each file, its own and that of its mapping. A third one was made to send it, and is left.
    """
    heap = sys.modules.get("multiprocessing.heap")
    if heap is None:
        return set()
    own = {arena.fd for arena in heap.BufferWrapper._heap._arenas}
    targets = dict(_targets())
    files = {targets[fd] for fd in own if fd in targets}
    others = {file: [fd for fd in targets if targets[fd] == file and fd not in own] for file in files}
    return own.union(min(fds) for fds in others.values() if fds)


def own_session() -> Session | None:
    """Return the session of named shared memory that this process has, if any."""
    module = sys.modules.get("nbmp.memory.session")
    return getattr(module, "_own", None)


def to_session() -> set[int | None]:
    """Return what leads to the folder of this process' own session."""
    session = own_session()
    return {session.fd} if session else set()


HELPER_DESCRIPTORS: list[Callable[[], set[int | None]]] = [
    to_standard_helpers,
    to_fork_server,
    to_standard_heap,
    to_session,
]


@dataclass(frozen=True)
class Holdings:
    """What this process holds at one moment; each entry maps an identity to how it is shown."""

    children: dict[tuple[int, float], str] = field(default_factory=dict)
    descriptors: dict[tuple[int, str], str] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    threads: dict[int, str] = field(default_factory=dict)

    @classmethod
    def now(cls) -> Holdings:
        return cls(
            children=_children(),
            descriptors=_descriptors(set().union(*(named() for named in HELPER_DESCRIPTORS))),
            names={name: name for name in (*_stray_names(), *_names_of_own_session())},
            threads={t.ident or 0: t.name for t in threading.enumerate() if t.name.startswith("nbmp")},
        )

    def beyond(self, earlier: Holdings, kinds: Collection[str]) -> list[str]:
        """Return, as lines of text, what is here and was not there `earlier`."""
        return [
            f"{kind}: {shown}"
            for kind in kinds
            for identity, shown in getattr(self, kind).items()
            if identity not in getattr(earlier, kind)
        ]


def leftovers(earlier: Holdings, kinds: Collection[str] = KINDS, patience: float = PATIENCE) -> list[str]:
    """Return what is held beyond `earlier` and does not go away within `patience` seconds."""
    deadline = time.monotonic() + patience
    while left := Holdings.now().beyond(earlier, kinds):
        if time.monotonic() > deadline:
            break
        give_back_what_is_kept()
        gc.collect()  # a cycle (a traceback, say) may be all that keeps an array and its descriptors
        time.sleep(0.02)
    return left


def give_back_what_is_kept() -> None:
    """Have nbmp give back the memory that it keeps for reuse: kept on purpose, it is no leak."""
    janitor = sys.modules.get("nbmp.memory.janitor")
    if janitor is not None:
        janitor.trim()
    session = own_session()
    if session is not None:
        session.sweep()


def _stray_names() -> list[str]:
    return [path.name for path in SHM.glob("nbmp*") if not path.is_dir()]


def _names_of_own_session() -> list[str]:
    session = own_session()
    if session is None:
        return []
    return [f"{session.name}/{name}" for name in os.listdir(SHM / session.name) if name[0].isdigit()]


def _children() -> dict[tuple[int, float], str]:
    """Return the live descendants of this process, helpers left out."""
    found: dict[tuple[int, float], str] = {}
    commands: dict[int, str] = {}
    for pid in _descendants(os.getpid()):  # parents first
        with contextlib.suppress(psutil.NoSuchProcess):
            child = psutil.Process(pid)
            command = commands[child.pid] = " ".join(child.cmdline())
            if child.status() != psutil.STATUS_ZOMBIE and not is_helper(command, commands.get(child.ppid(), "")):
                found[child.pid, child.create_time()] = f"pid {child.pid} ({child.status()}) {command[:120]}"
    return found


def _descendants(pid: int) -> Iterator[int]:
    """Ask the kernel for the children of a process and for theirs.

    psutil asks every process of the machine for its parent: twice a test, that took a fifth of a test's own time.
    """
    with contextlib.suppress(OSError):  # the process has ended
        for thread in os.listdir(f"/proc/{pid}/task"):
            for child in _children_of(f"/proc/{pid}/task/{thread}/children"):
                yield child
                yield from _descendants(child)


def _children_of(file: str) -> list[int]:
    try:
        return [int(pid) for pid in Path(file).read_text().split()]
    except OSError:  # the thread has ended, and another one has its children
        return []


def is_helper(command: str, command_of_parent: str) -> bool:
    return any(known in command and known not in command_of_parent for known in HELPER_COMMANDS)


def _descriptors(to_helpers: Collection[int | None]) -> dict[tuple[int, str], str]:
    """Return the open descriptors of this process and what each one leads to."""
    return {(fd, target): f"{fd} -> {target}" for fd, target in _targets() if fd not in to_helpers}


def _targets() -> Iterator[tuple[int, str]]:
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(FileNotFoundError):  # the one that the listing itself had open
            yield int(name), os.readlink(f"/proc/self/fd/{name}")
