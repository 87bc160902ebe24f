"""Shared memory as a person asks about it: what my arrays are called, where they were made, who has them.

    memory_usage     segments and who has them mapped     (the operating system)
    named_arrays     what variables call them             (the notebook, or any mapping of names)
    Holders          who a pid is                         (launches and pools)
    made_in          which cell made a segment            (the notebook, where it knows)

meet here by address: a variable's array lies in whatever segment is mapped there. What comes out is plain data.
"""

import os
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from nbmp.memory.leftovers import Leftover, leftovers
from nbmp.memory.strategy import get_sharing_strategy
from nbmp.monitoring.holders import Holders
from nbmp.monitoring.memory import MemoryUsage, Room, usage_and_mappings
from nbmp.monitoring.named_arrays import NamedArray, named_arrays
from nbmp.monitoring.remarks import machine_memory, remarks
from nbmp.monitoring.segments import CACHED, SegmentUsage
from nbmp.platforms.memoryfiles import Key, addresses
from nbmp.platforms.memoryfiles import Mapping as MemoryMapping

ARRAY, UNNAMED, MESSAGE, RECEIVED, ARGUMENTS, KEPT = "array", "unnamed", "message", "received", "arguments", "cached"

FEW = 4
"""Arrays in one list that are alike get a row each, up to this number."""

MadeIn = Callable[[Key, int], str]
"""Given a segment and an offset in it, which cell made what is there: `Cell In[3]`; empty when that is not known."""


class MemoryRow(NamedTuple):
    """An array, or several things that there is less to say about."""

    kind: str
    """`array`: variables hold it. `unnamed`: none that was looked at does. `message`: under way. `received`: arrays of
    a message that somebody holds. `arguments` of ranks. `cached`: kept for the next message."""
    names: tuple[str, ...]
    """The variables, the one that shows most of it first; views of it are among them."""
    number: int
    """How many things: more than one for what no variable holds, and for arrays alike in one list or dictionary."""
    shape: tuple[int, ...] | None
    """Of the first variable's array."""
    dtype: str
    bytes: int
    """That it may take."""
    taken: int
    """That it takes: pages are taken as they are written to."""
    made_in: str
    mapped_by: str


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


def memory_view(names: Mapping[str, object], holders: Holders, made_in: MadeIn = lambda key, offset: "") -> MemoryView:
    """Return shared memory as it is now.

    Parameters
    ----------
    names
        Variables whose arrays are called by their names.
    holders
        Who has what. It has looked just now.
    made_in
        Which cell made what.
    """
    usage, mappings = usage_and_mappings()
    found = _placed(named_arrays(names), mappings)
    sort = _Sorted(holders, made_in, os.getpid())
    for segment in usage.segments:
        sort.add(segment, found.get(segment.key, ()))
    left = tuple(leftovers())
    cached = (one for one in usage.segments if one.state == CACHED and one.creator == os.getpid())
    strategy = get_sharing_strategy()
    return MemoryView(
        tuple(sort.rows()),
        usage,
        strategy,
        sum(segment.bytes for segment in cached),
        left,
        tuple(remarks(usage, strategy, left)),
        usage.control_group or _machine(usage),
    )


def _machine(usage: MemoryUsage) -> Room:
    limit = machine_memory()
    return Room(limit, limit - min(limit, usage.available or 0))


class _Placed(NamedTuple):
    """An array with a name, and where in its segment it is."""

    array: NamedArray
    offset: int

    @property
    def end(self) -> int:
        return self.offset + self.array.end - self.array.start


def _placed(arrays: Sequence[NamedArray], mappings: Sequence[tuple[MemoryMapping, Key]]) -> dict[Key, list[_Placed]]:
    """Return the arrays that lie in segments, by segment and in order of their places in it."""
    found: dict[Key, list[_Placed]] = {}
    parts = sorted((*addresses(mapping), int(mapping[1], 16), key) for mapping, key in mappings)
    starts = [start for start, *_ in parts]
    for array in arrays:
        at = bisect_right(starts, array.start) - 1
        if at >= 0 and array.start < parts[at][1]:
            start, _, offset, key = parts[at]
            found.setdefault(key, []).append(_Placed(array, offset + array.start - start))
    for those in found.values():
        those.sort(key=lambda placed: placed.offset)
    return found


class _Sorted:
    """Segments, sorted into rows."""

    def __init__(self, holders: Holders, made_in: MadeIn, own: int) -> None:
        self._holders = holders
        self._made_in = made_in
        self._own = own
        self._named: list[MemoryRow] = []
        self._others: dict[tuple[str, str, str], list[SegmentUsage]] = {}
        """By kind, where they were made, and who has them."""

    def add(self, segment: SegmentUsage, placed: Sequence[_Placed]) -> None:
        """Add a segment with the named arrays in it."""
        if segment.purpose == "board":
            return
        if placed and segment.state != CACHED:
            pieces = _apart(placed) if segment.purpose == "arrays" else [placed]
            self._named += [self._row(segment, piece) for piece in pieces]
            return
        kind = _kind(segment)
        made_in = self._where(segment, 0) if kind in (UNNAMED, RECEIVED) else ""
        if kind == MESSAGE:
            made_in = f"from {self._holders.text([segment.creator])}"
        self._others.setdefault((kind, made_in, self._holders.text(segment.mapped_by)), []).append(segment)

    def rows(self) -> list[MemoryRow]:
        """Return all of them."""
        others = [
            MemoryRow(kind, (), len(those), None, "", sum(s.size for s in those), sum(s.bytes for s in those), *rest)
            for (kind, *rest), those in self._others.items()
        ]
        return [
            *sorted(_alike(self._named), key=_order),
            *sorted(others, key=lambda row: (row.kind == KEPT, *_order(row))),
        ]

    def _row(self, segment: SegmentUsage, placed: Sequence[_Placed]) -> MemoryRow:
        by_size = sorted(placed, key=lambda one: (-one.array.bytes, one.offset))
        first = by_size[0].array
        size, taken = segment.size, segment.bytes
        if segment.purpose == "arrays":  # the segment is shared with others
            size = taken = max(one.end for one in placed) - placed[0].offset
        return MemoryRow(
            ARRAY,
            tuple(one.array.name for one in by_size),
            1,
            first.shape,
            first.dtype,
            size,
            min(taken, size),
            self._where(segment, placed[0].offset),
            self._holders.text(segment.mapped_by),
        )

    def _where(self, segment: SegmentUsage, offset: int) -> str:
        """Return the cell that made it, or that took it out of a queue."""
        cell = self._made_in(segment.key, offset)
        if segment.creator == self._own:
            return cell
        maker = f"by {self._holders.text([segment.creator])}"
        return f"{cell}, {maker}" if cell else maker


def _order(row: MemoryRow) -> tuple[int, tuple[str, ...]]:
    return -row.bytes, row.names


def _alike(rows: Sequence[MemoryRow]) -> list[MemoryRow]:
    """Return the rows, those of arrays in the same list or dictionary that are alike together."""
    groups: dict[object, list[MemoryRow]] = {}
    for row in rows:
        name = row.names[0]
        holder = name.partition("[")[0] if name.endswith("]") and len(row.names) == 1 else name
        groups.setdefault((holder, row.shape, row.dtype, row.made_in, row.mapped_by), []).append(row)
    found: list[MemoryRow] = []
    for those in groups.values():
        if len(those) <= FEW:
            found += those
        else:
            names = tuple(row.names[0] for row in those)
            size, taken = sum(row.bytes for row in those), sum(row.taken for row in those)
            found.append(those[0]._replace(names=names, number=len(those), bytes=size, taken=taken))
    return found


def _apart(placed: Sequence[_Placed]) -> list[list[_Placed]]:
    """Return those that overlap together: small arrays lie beside each other in one segment."""
    pieces: list[list[_Placed]] = []
    end = -1
    for one in placed:
        if one.offset < end:
            pieces[-1].append(one)
        else:
            pieces.append([one])
        end = max(end, one.end)
    return pieces


def _kind(segment: SegmentUsage) -> str:
    if segment.state == CACHED:
        return KEPT
    if segment.purpose == "arguments":
        return ARGUMENTS
    if segment.purpose != "message":
        return UNNAMED
    has_it = segment.opened_by if segment.strategy == "file_descriptor" else segment.mapped_by
    return RECEIVED if set(has_it) - {segment.creator} else MESSAGE
