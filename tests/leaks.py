"""What a test may not leave behind: child processes, descriptors, names in /dev/shm, threads of nbmp.

`Holdings.now()` looks only at this process and its own descendants, and only reads: nothing is killed, closed
or unlinked here. `leftovers` compares two looks and waits a while, since a process that was told to end and a
thread that was told to stop take a moment.

A helper that lives on purpose (a fork server, a resource tracker) is not a leak. Whatever starts one says so
by a function in `HELPERS`, which returns the pids and the descriptors that belong to it at that moment.
"""

from __future__ import annotations

import gc
import os
import threading
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from multiprocessing import forkserver, resource_tracker
from pathlib import Path

import psutil

KINDS = ("children", "descriptors", "names", "threads")
PATIENCE = 5.0  # seconds until what is still there counts as left behind
SHM = Path("/dev/shm")


@dataclass(frozen=True)
class Helper:
    """A process that is meant to outlive a test, and this process' ends of its pipes and sockets."""

    pids: frozenset[int] = frozenset()
    descriptors: frozenset[int] = frozenset()


def standard_library() -> Helper:
    """Return multiprocessing's own fork server and resource tracker."""
    server, tracker = forkserver._forkserver, resource_tracker._resource_tracker
    pids = (getattr(server, "_forkserver_pid", None), getattr(tracker, "_pid", None))
    descriptors = (getattr(server, "_forkserver_alive_fd", None), getattr(tracker, "_fd", None))
    return Helper(frozenset(filter(None, pids)), frozenset(filter(None, descriptors)))


HELPERS: list[Callable[[], Helper]] = [standard_library]


@dataclass(frozen=True)
class Holdings:
    """What this process holds at one moment; each entry maps an identity to how it is shown."""

    children: dict[tuple[int, float], str] = field(default_factory=dict)
    descriptors: dict[tuple[int, str], str] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    threads: dict[int, str] = field(default_factory=dict)

    @classmethod
    def now(cls) -> Holdings:
        helpers = [helper() for helper in HELPERS]
        return cls(
            children=_children(set().union(*(helper.pids for helper in helpers))),
            descriptors=_descriptors(set().union(*(helper.descriptors for helper in helpers))),
            names={path.name: path.name for path in SHM.glob("nbmp*")},
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
        gc.collect()  # a cycle (a traceback, say) may be all that keeps an array and its descriptors
        time.sleep(0.02)
    return left


def _children(helpers: Collection[int]) -> dict[tuple[int, float], str]:
    """Return the live descendants of this process, helpers and their descendants left out."""
    found: dict[tuple[int, float], str] = {}
    waiting = psutil.Process().children()
    while waiting:
        child = waiting.pop()
        if child.pid in helpers:
            continue
        try:
            waiting += child.children()
            if child.status() != psutil.STATUS_ZOMBIE:
                command = " ".join(child.cmdline())[:120]
                found[child.pid, child.create_time()] = f"pid {child.pid} ({child.status()}) {command}"
        except psutil.NoSuchProcess:
            continue
    return found


def _descriptors(helpers: Collection[int]) -> dict[tuple[int, str], str]:
    """Return the open descriptors of this process and what each one leads to."""
    found: dict[tuple[int, str], str] = {}
    for name in os.listdir("/proc/self/fd"):
        try:
            target = os.readlink(f"/proc/self/fd/{name}")
        except FileNotFoundError:  # the one that the listing itself had open
            continue
        if int(name) not in helpers:
            found[int(name), target] = f"{name} -> {target}"
    return found
