"""Segments as the rows that a person reads: named arrays one by one, the rest in few lines."""

import os
from collections.abc import Callable, Sequence
from typing import NamedTuple

from nbmp.monitoring.memory.holders import Holders
from nbmp.monitoring.memory.named_arrays import NamedArray
from nbmp.monitoring.memory.segments import CACHED, SegmentUsage
from nbmp.platforms.memoryfiles import Key

ARRAY, UNNAMED, ELSEWHERE = "array", "unnamed", "elsewhere"
MESSAGE, RECEIVED, ARGUMENTS, KEPT = "message", "received", "arguments", "cached"

FEW = 4
"""Arrays in one list that are alike get a row each, up to this number."""

MadeIn = Callable[[Key, int], str]
"""Given a segment and an offset in it, which cell made what is there: `Cell In[3]`; empty when that is not known."""


class MemoryRow(NamedTuple):
    """An array, or several things that there is less to say about."""

    kind: str
    """`array`: variables hold it. `unnamed`: this process has it mapped, but no variable that was looked at holds it.
    `elsewhere`: only other processes have it. `message`: under way. `received`: in a message that somebody holds.
    `arguments` of ranks. `cached`: kept for the next message."""
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
    """The cell and, if it was not the notebook, the process; of messages only who sent them."""
    mapped_by: str
    """Of what is cached, who keeps it."""


class Placed(NamedTuple):
    """An array with a name, and where it is in its segment."""

    array: NamedArray
    offset: int
    number: int
    """In the order of the variables."""

    @property
    def end(self) -> int:
        return self.offset + self.array.end - self.array.start


class Rows:
    """Segments, sorted into rows."""

    def __init__(self, holders: Holders, made_in: MadeIn) -> None:
        self._holders = holders
        self._made_in = made_in
        self._named: dict[int, MemoryRow] = {}
        """By the place of the first variable."""
        self._others: dict[tuple[object, ...], list[SegmentUsage]] = {}
        """By kind, and by what else tells rows apart."""

    def add(self, segment: SegmentUsage, placed: Sequence[Placed]) -> None:
        """Add a segment with the named arrays in it, in order of their places."""
        if segment.purpose == "board":
            return
        if placed and segment.state != CACHED:
            for piece in _apart(placed) if segment.purpose == "arrays" else [placed]:
                self._add_named(segment, piece)
            return
        kind = _kind(segment)
        apart: tuple[object, ...] = ()
        if kind == UNNAMED:
            apart = self._where([segment]), segment.mapped_by
        elif kind == ELSEWHERE:  # ranks that do the same make arrays of one size
            apart = (segment.size,)
        self._others.setdefault((kind, *apart), []).append(segment)

    def in_order(self) -> tuple[MemoryRow, ...]:
        """Return all of them: named arrays by size, the rest by size, what is cached."""
        named = _alike([self._named[number] for number in sorted(self._named)])
        others = [
            self._row_of_others(str(kind), those)
            for (kind, *_), those in self._others.items()
            if kind != KEPT or any(one.bytes for one in those)
        ]
        named.sort(key=lambda row: -row.bytes)
        others.sort(key=lambda row: (row.kind == KEPT, -row.bytes))
        return (*named, *others)

    def _row_of_others(self, kind: str, those: Sequence[SegmentUsage]) -> MemoryRow:
        taken = sum(segment.bytes for segment in those)
        size = sum(segment.size for segment in those)
        if kind in (MESSAGE, RECEIVED, KEPT):  # a message's segment has more room than it needs
            size = taken
        # who has mapped what is cached will use it again
        who = {pid for one in those for pid in ([one.creator] if kind == KEPT else one.mapped_by)}
        made_in = "" if kind in (KEPT, ARGUMENTS) else self._where(those)
        return MemoryRow(kind, (), len(those), None, "", size, taken, made_in, self._holders.text(sorted(who)))

    def _add_named(self, segment: SegmentUsage, placed: Sequence[Placed]) -> None:
        by_size = sorted(placed, key=lambda one: (-one.array.bytes, one.number))
        first = by_size[0].array
        size, taken = segment.size, segment.bytes
        if segment.purpose == "arrays":  # others are in the segment as well
            size = max(one.end for one in placed) - placed[0].offset
        elif segment.purpose == "message":  # it has more room than the message needed
            size = max(taken, sum(piece.array.bytes for piece in by_size[:1]))
        self._named[min(one.number for one in placed)] = MemoryRow(
            ARRAY,
            tuple(one.array.name for one in by_size),
            1,
            first.shape,
            first.dtype,
            size,
            min(taken, size),
            self._where([segment], placed[0].offset),
            self._holders.text(segment.mapped_by),
        )

    def _where(self, segments: Sequence[SegmentUsage], offset: int = 0) -> str:
        """Return the cell that made them, or that took them out of a queue, and who made them if it was another one."""
        first, own = segments[0], os.getpid()
        makers = sorted({segment.creator for segment in segments})
        maker = self._holders.text(makers)
        if first.purpose == "message":
            return f"from {maker}"
        cell = self._made_in(first.key, offset) if own in first.mapped_by else ""
        if makers == [own]:
            return cell
        return f"{cell}, by {maker}" if cell else f"by {maker}"


def _alike(rows: Sequence[MemoryRow]) -> list[MemoryRow]:
    """Return the rows, those of arrays in the same list or dictionary that are alike together, in their order."""
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


def _apart(placed: Sequence[Placed]) -> list[list[Placed]]:
    """Return those that overlap together: small arrays lie beside each other in one segment."""
    pieces: list[list[Placed]] = []
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
        return UNNAMED if os.getpid() in segment.mapped_by else ELSEWHERE
    has_it = segment.opened_by if segment.strategy == "file_descriptor" else segment.mapped_by
    return RECEIVED if set(has_it) - {segment.creator} else MESSAGE
