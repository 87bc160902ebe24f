"""Snapshots of shared memory: one row per segment, of this process and all that descend from it.

What a segment is for, and who made it, stand in its name:

    file_descriptor    memfd:nbmp-<pid of creator>-<purpose>
    file_system        /dev/shm/nbmp-<user>-<random>/<pid of creator>-<purpose>-<random>

The operating system tells who has which of them mapped or open. Whether one that is kept for messages is free, the
recycler knows in this process; of other processes the locks and names of the file tell it.
"""

import contextlib
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from nbmp import platforms
from nbmp.memory.recycler import recycler
from nbmp.monitoring.snapshots import size
from nbmp.platforms.cgroups import cgroup_memory
from nbmp.platforms.memoryfiles import (
    Key,
    Mapping,
    descendants,
    file_system_room,
    locked_files,
    mapped_bytes,
    memory_files,
    named_files,
)

IN_USE, CACHED = "in use", "cached"
ROWS = 20
"""Segments in a text table, the largest first; the rest in one line."""
PIDS = 8

_MEMFD = re.compile(r"/memfd:nbmp-(\d+)-(\w+)")
_NAMED = re.compile(r"/dev/shm/nbmp-[^/]+/(\d+)-(\w+)-")


class SegmentUsage(NamedTuple):
    """One segment at one moment."""

    size: int
    """Bytes that it has room for."""
    taken: int | None
    """Bytes of memory that it takes: pages are taken as they are written to. None where that cannot be known: when no
    process of those looked at has it open, but one has it mapped."""
    state: str
    """`cached` when it is free: kept for the next message, or not given back yet; else `in use`."""
    purpose: str
    """`array`, `arrays` (small ones, together), `message`, `arguments` (ranks copy what they write to) or `board`."""
    strategy: str
    """`file_descriptor` or `file_system`."""
    creator: int
    """The pid of the process that made it, which may have ended."""
    mapped_by: tuple[int, ...]
    """The pids of those that have it mapped. Others may have it open, such as the sender of a message."""


@dataclass(frozen=True)
class Room:
    """Bytes of memory that there may be in all, and that are in use by anybody."""

    limit: int
    used: int

    @property
    def free(self) -> int:
        return max(0, self.limit - self.used)


@dataclass(frozen=True)
class MemoryUsage:
    """Shared memory at one moment."""

    segments: tuple[SegmentUsage, ...]
    """The largest first."""
    processes: tuple[int, ...]
    """The pids of all that were looked at, this process' first."""
    hidden: tuple[int, ...]
    """The pids of those that the system would not tell about: they belong to another user."""
    dev_shm: Room | None
    """`/dev/shm`, the place of `file_system` segments, which bounds them; None where it is missing or has no limit."""
    control_group: Room | None
    """The memory of the container or job, all of it, page cache that can be dropped left out; None without a limit."""
    available: int | None
    """Bytes that can be taken before the system runs short, of machine and control group, the less."""

    @property
    def in_use(self) -> int:
        """Return the bytes that segments in use take; their size where that is not known."""
        return self.bytes_of(state=IN_USE)

    @property
    def cached(self) -> int:
        """Return the bytes that segments kept for reuse take; `nbmp.trim()` gives this process' back."""
        return self.bytes_of(state=CACHED)

    def bytes_of(self, *, state: str | None = None, strategy: str | None = None) -> int:
        """Return the bytes that the segments of this state and strategy take; None stands for all."""
        chosen = (
            segment
            for segment in self.segments
            if state in (None, segment.state) and strategy in (None, segment.strategy)
        )
        return sum(segment.size if segment.taken is None else segment.taken for segment in chosen)

    def __str__(self) -> str:
        return usage_table(self)


def memory_usage() -> MemoryUsage:
    """Return what shared memory this process and its descendants use: plain data; `print` it for a table.

    Ranks, pool workers and whatever they have started are looked at, through `/proc`; nothing is opened, and nobody
    waits. Call it from any process: it tells about that process and its descendants.

    It cannot know
    - of segments that only other processes have: of another user (listed as `hidden`), or not descended from this one;
    - of a message that is under way while its sender has ended;
    - the state of what a rank keeps for reuse where the system does not list locks (`/proc/locks`): in use, it says;
    - whether what a process has mapped is used by an array there: mappings are kept for some seconds, and count as in
      use when the creator has ended;
    - a process that starts or ends while it looks.
    """
    looks = _Looks()
    own = os.getpid()
    for pid in (own, *sorted(descendants(own))):
        looks.look_at(pid)
    return MemoryUsage(
        tuple(sorted(looks.segments(), key=lambda segment: -segment.size)),
        tuple(looks.processes),
        tuple(looks.hidden),
        _room(file_system_room("/dev/shm")),
        _room(cgroup_memory()),
        platforms.available_memory(),
    )


class _Looks:
    """What was seen in one process after another."""

    def __init__(self) -> None:
        self.processes: list[int] = []
        self.hidden: list[int] = []
        self._names: dict[Key, str] = {}
        self._mapped: dict[Key, Mapping] = {}
        self._opened: dict[Key, os.stat_result] = {}
        self._mapped_by: dict[Key, list[int]] = {}

    def look_at(self, pid: int) -> None:
        """Add what this process has."""
        try:
            files = memory_files(pid, self._names)
        except PermissionError:
            self.hidden.append(pid)
        except OSError:
            pass  # it has ended
        else:
            self.processes.append(pid)
            self._mapped |= files.mapped
            self._opened |= files.opened
            for key in files.mapped:
                self._mapped_by.setdefault(key, []).append(pid)

    def segments(self) -> list[SegmentUsage]:
        """Return all segments that were seen."""
        unheld = named_files(set(self.processes), self._names)
        self._opened |= unheld
        free = {segment.key for segment in recycler.segments() if segment.is_free()}
        free |= {key for key, status in unheld.items() if status.st_nlink == 1}  # a message gives it a second name
        others, locked = set(self.processes[1:]), locked_files()
        found = []
        for key in self._mapped | self._opened:
            about = _parsed(self._names[key])
            if about is None:
                continue
            strategy, creator, purpose = about
            is_free = key in free
            if creator in others and purpose == "message" and strategy == "file_descriptor":
                is_free = locked is not None and key not in locked
            status = self._opened.get(key) or _status_of_name(self._names[key], key)
            found.append(
                SegmentUsage(
                    mapped_bytes(self._mapped[key]) if status is None else status.st_size,
                    None if status is None else status.st_blocks * 512,
                    CACHED if is_free else IN_USE,
                    purpose,
                    strategy,
                    creator,
                    tuple(self._mapped_by.get(key, ())),
                )
            )
        return found


def _status_of_name(path: str, key: Key) -> os.stat_result | None:
    """Return the status of a segment that nobody has open, but that has a name."""
    if _NAMED.match(path):
        with contextlib.suppress(OSError):
            status = os.stat(path)
            if (status.st_dev, status.st_ino) == key:
                return status
    return None


@lru_cache(maxsize=256)
def _parsed(path: str) -> tuple[str, int, str] | None:
    """Return strategy, creator and purpose; None for a file that is no segment."""
    if found := _MEMFD.match(path):
        return "file_descriptor", int(found[1]), found[2]
    if found := _NAMED.match(path):
        return "file_system", int(found[1]), found[2]
    return None


def _room(found: tuple[int, int] | None) -> Room | None:
    return None if found is None else Room(*found)


def usage_table(usage: MemoryUsage) -> str:
    """Return the snapshot as lines of text: totals, then the largest segments."""
    count = len(usage.processes)
    lines = [
        f"shared memory of {count} process{'es' if count != 1 else ''}: {size(usage.in_use)} in use, "
        f"{size(usage.cached)} cached",
        *_rooms(usage),
    ]
    if usage.segments:
        lines += _table([_HEAD, *map(_cells, usage.segments[:ROWS])])
    if rest := usage.segments[ROWS:]:
        lines.append(f"and {len(rest)} smaller ones, {size(sum(segment.size for segment in rest))} together")
    return "\n".join(lines)


def _rooms(usage: MemoryUsage) -> Iterable[str]:
    memfd = usage.bytes_of(strategy="file_descriptor")
    yield f"file_descriptor: {size(memfd)}; {size(usage.available)} available"
    if usage.dev_shm is not None:
        named = usage.bytes_of(strategy="file_system")
        yield f"file_system: {size(named)}; {_of(usage.dev_shm)} of /dev/shm in use by all"
    if usage.control_group is not None:
        yield f"control group: {_of(usage.control_group)} in use"
    if usage.hidden:
        yield f"not to be seen: {', '.join(map(str, usage.hidden))}"


def _of(room: Room) -> str:
    return f"{size(room.used)} of {size(room.limit)}"


_HEAD = ("size", "taken", "state", "purpose", "creator", "mapped by")


def _cells(segment: SegmentUsage) -> tuple[str, ...]:
    pids = " ".join(map(str, segment.mapped_by[:PIDS]))
    if len(segment.mapped_by) > PIDS:
        pids += f" and {len(segment.mapped_by) - PIDS} more"
    numbers = size(segment.size), size(segment.taken)
    return *numbers, segment.state, segment.purpose, str(segment.creator), pids


def _table(rows: Sequence[tuple[str, ...]]) -> Iterable[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        numbers = [cell.rjust(width) for cell, width in zip(row[:2], widths, strict=False)]
        words = [cell.ljust(width) for cell, width in zip(row[2:], widths[2:], strict=True)]
        yield "  ".join([*numbers, *words]).rstrip()
