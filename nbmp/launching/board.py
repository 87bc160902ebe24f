"""The rank board: a small table in shared memory, one row a rank, written by the ranks, read by the launching process.

A monitor can look at it at any time without asking a rank, which may be busy in C code. Rows are written by their own
rank only. A state is one byte; of the progress bars, a reader that comes in the middle of a write sees what was there
before.

    0    state (byte), time at which the function was called (double, at 8)
    64   the outermost progress bar of the rank
    288  the innermost one, when there are several
    512  the locks that it has, see `left`
"""

import os
import struct
import time

from nbmp.launching.bars.slots import SLOT_BYTES, BarSlot
from nbmp.launching.left import NOTES_BYTES, Notes
from nbmp.memory.segment import Segment

STARTING, RUNNING, ENDING, LOST, UNREAD = range(5)

_ROW = struct.Struct("=B7xd")
_BARS = 64
_NOTES = _BARS + 2 * SLOT_BYTES
ROW_BYTES = _NOTES + NOTES_BYTES


class Row:
    """One rank's row. `segment` is the whole board."""

    def __init__(self, segment: Segment, rank: int) -> None:
        self._map = segment.map
        self._offset = rank * ROW_BYTES
        self.bars = tuple(BarSlot(self._map, self._offset + _BARS + number * SLOT_BYTES) for number in range(2))
        """Of the outermost and of the innermost progress bar."""
        self.notes = Notes(self._map, self._offset + _NOTES)
        """Of locks."""

    def running(self) -> None:
        """The rank calls its function now."""
        _ROW.pack_into(self._map, self._offset, RUNNING, time.monotonic())

    def ending(self) -> None:
        """The function is over."""
        self._map[self._offset] = ENDING

    def unread(self, is_so: bool) -> None:
        """Whether the rank, at its exit, waits until what it has put into queues is read."""
        self._map[self._offset] = UNREAD if is_so else ENDING

    def lost(self) -> None:
        """The rank has an outcome and no channel any more to tell it."""
        self._map[self._offset] = LOST

    def state(self) -> int:
        """Return STARTING, RUNNING, ENDING, LOST or UNREAD."""
        return self._map[self._offset]


def board(world_size: int) -> Segment:
    """Return a new board, all ranks STARTING."""
    return Segment.create(world_size * ROW_BYTES, "board")


_own: Row | None = None


def be(row: Row) -> None:
    """This process is the rank of that row."""
    global _own
    _own = row


def own_row() -> Row | None:
    """Return the row of the rank that this process is, None elsewhere; a child that a rank forks has none."""
    return _own


os.register_at_fork(after_in_child=lambda: globals().update(_own=None))
