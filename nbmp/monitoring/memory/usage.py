"""A snapshot of shared memory: one row per segment, of this process and all that descend from it, and the limits."""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from nbmp import platforms
from nbmp.launching.frontends import current
from nbmp.monitoring.memory.holders import Holders
from nbmp.monitoring.memory.segments import CACHED, IN_USE, Looks, SegmentUsage
from nbmp.monitoring.snapshots import DASH, columns, size
from nbmp.platforms.cgroups import cgroup_memory
from nbmp.platforms.memoryfiles import Key, descendants, file_system_room
from nbmp.platforms.memoryfiles import Mapping as MemoryMapping

ROWS = 20
"""Segments in a text table, the largest first; the rest in one line."""

Pids = tuple[int, ...]


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
    called: Mapping[Pids, str] = field(default_factory=dict)
    """What a person calls those that made segments or have them: `notebook, ranks 0 1`."""

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
        return sum(segment.bytes for segment in chosen)

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
    return usage_and_mappings()[0]


def usage_and_mappings() -> tuple[MemoryUsage, list[tuple[MemoryMapping, Key]]]:
    """Return the same, and what this process has mapped, by address."""
    looks = Looks()
    own = os.getpid()
    for pid in (own, *sorted(descendants(own))):
        looks.look_at(pid)
    segments = tuple(sorted(looks.segments(), key=lambda segment: -segment.size))
    usage = MemoryUsage(
        segments,
        tuple(looks.processes),
        tuple(looks.hidden),
        _room(file_system_room("/dev/shm")),
        _room(cgroup_memory()),
        platforms.available_memory(),
        _called(segments),
    )
    return usage, looks.own


def _called(segments: Iterable[SegmentUsage]) -> dict[Pids, str]:
    holders = Holders("notebook" if current().stops_ranks_at_exit else "this process")
    holders.look({})
    asked = {pids for segment in segments for pids in ((segment.creator,), segment.mapped_by)}
    return {pids: holders.text(pids) for pids in asked}


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
    boards = [segment for segment in usage.segments if segment.purpose == "board"]
    segments = [segment for segment in usage.segments if segment.purpose != "board"]
    if segments:
        lines.append(columns([_HEAD, *(_cells(segment, usage.called) for segment in segments[:ROWS])], right=(0, 1)))
    if boards:
        together = size(sum(segment.bytes for segment in boards))
        lines.append(f"bookkeeping of launches: {len(boards)} segment{'s' if len(boards) != 1 else ''}, {together}")
    if rest := segments[ROWS:]:
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


_HEAD = ("size", "taken", "state", "purpose", "made by", "mapped by")


def _cells(segment: SegmentUsage, called: Mapping[Pids, str]) -> tuple[str, ...]:
    made_by, mapped_by = (
        called.get(pids) or " ".join(map(str, pids)) for pids in ((segment.creator,), segment.mapped_by)
    )
    return size(segment.size), size(segment.taken), segment.state, segment.purpose, made_by, mapped_by or DASH
