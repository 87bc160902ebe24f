"""Shared memory as a person asks about it: what my arrays are called, where they were made, who has them.

    memory_usage     segments and who has them mapped     (the operating system)
    named_arrays     what variables call them             (the notebook, or any mapping of names)
    Holders          who a pid is                         (launches and pools)
    made_in          which cell made a segment            (the notebook, where it knows)

meet here by address: a variable's array lies in whatever segment is mapped there. What comes out is plain data.
"""

import os
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from nbmp.memory.leftovers import Leftover, leftovers
from nbmp.memory.strategy import get_sharing_strategy
from nbmp.monitoring.memory.holders import Holders
from nbmp.monitoring.memory.named_arrays import NamedArray, named_arrays
from nbmp.monitoring.memory.remarks import machine_memory, remarks
from nbmp.monitoring.memory.rows import ARRAY, MadeIn, MemoryRow, Placed, Rows
from nbmp.monitoring.memory.segments import CACHED
from nbmp.monitoring.memory.usage import MemoryUsage, Room, usage_and_mappings
from nbmp.platforms.memoryfiles import Key, addresses
from nbmp.platforms.memoryfiles import Mapping as MemoryMapping


@dataclass(frozen=True)
class MemoryView:
    """Shared memory at one moment."""

    rows: tuple[MemoryRow, ...]
    """Named arrays by size, then the rest by size."""
    usage: MemoryUsage
    strategy: str
    """Of arrays made from now on."""
    own_cached: int
    """Bytes that `nbmp.trim()` gives back."""
    leftovers: tuple[Leftover, ...]
    """Of dead sessions of this user."""
    remarks: tuple[str, ...]
    """What a person should know, a line each."""
    room: Room
    """All memory that there may be: of this container, or of the machine."""

    @property
    def arrays(self) -> list[MemoryRow]:
        """Return the rows of arrays that variables hold."""
        return [row for row in self.rows if row.kind == ARRAY]


def memory_view(
    names: Mapping[str, object],
    holders: Holders,
    made_in: MadeIn = lambda key, offset: "",
    spare: Mapping[str, object] | None = None,
) -> MemoryView:
    """Return shared memory as it is now.

    Parameters
    ----------
    names
        Variables whose arrays are called by their names.
    holders
        Who has what. It has looked just now.
    made_in
        Which cell made what.
    spare
        More names, for arrays that have no other.
    """
    usage, mappings = usage_and_mappings()
    placed = {**_placed(named_arrays(spare or {}), mappings), **_placed(named_arrays(names), mappings)}
    rows = Rows(holders, made_in)
    for segment in usage.segments:
        rows.add(segment, placed.get(segment.key, ()))
    left = tuple(leftovers())
    strategy = get_sharing_strategy()
    cached = (one for one in usage.segments if one.state == CACHED and one.creator == os.getpid())
    return MemoryView(
        rows.in_order(),
        usage,
        strategy,
        sum(segment.bytes for segment in cached),
        left,
        tuple(remarks(usage, strategy, left)),
        usage.control_group or _machine(usage),
    )


def _placed(arrays: Sequence[NamedArray], mappings: Sequence[tuple[MemoryMapping, Key]]) -> dict[Key, list[Placed]]:
    """Return the arrays that lie in segments, by segment and in order of their places in it."""
    found: dict[Key, list[Placed]] = {}
    parts = sorted((*addresses(mapping), int(mapping[1], 16), key) for mapping, key in mappings)
    starts = [start for start, *_ in parts]
    for number, array in enumerate(arrays):
        at = bisect_right(starts, array.start) - 1
        if at >= 0 and array.start < parts[at][1]:
            start, _, offset, key = parts[at]
            found.setdefault(key, []).append(Placed(array, offset + array.start - start, number))
    for those in found.values():
        those.sort(key=lambda placed: placed.offset)
    return found


def _machine(usage: MemoryUsage) -> Room:
    limit = machine_memory()
    return Room(limit, limit - min(limit, usage.available or 0))
