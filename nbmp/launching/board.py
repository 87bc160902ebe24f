"""The rank board: a small table in shared memory, one row a rank, written by the ranks, read by the launching process.

A monitor can look at it at any time without asking a rank, which may be busy in C code. Rows are written by their own
rank only; a reader may see a row half written, which for a display is good enough.
"""

import struct
import time

from nbmp.memory.segment import Segment

STARTING, RUNNING, ENDING, LOST = range(4)

_ROW = struct.Struct("=B7xd")  # state, monotonic time at which the rank's function was called
ROW_BYTES = 64


class Row:
    """One rank's row. `segment` is the whole board."""

    def __init__(self, segment: Segment, rank: int) -> None:
        self._map = segment.map
        self._offset = rank * ROW_BYTES

    def running(self) -> None:
        """The rank calls its function now."""
        _ROW.pack_into(self._map, self._offset, RUNNING, time.monotonic())

    def ending(self) -> None:
        """The function is over."""
        self._map[self._offset] = ENDING

    def lost(self) -> None:
        """The rank has an outcome and no channel any more to tell it."""
        self._map[self._offset] = LOST

    def state(self) -> int:
        """Return STARTING, RUNNING, ENDING or LOST."""
        return self._map[self._offset]


def board(world_size: int) -> Segment:
    """Return a new board, all ranks STARTING."""
    return Segment.create(world_size * ROW_BYTES, "board")
