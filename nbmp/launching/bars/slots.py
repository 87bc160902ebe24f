"""A progress bar on the rank board: how it lies there.

    0   check      CRC-32 of what follows, up to the end of the text
    4   length     of the text in bytes
    6   kind       nothing, counted by `nbmp.progress` (the reader words it), or worded by whoever draws it
    7   which      of the two counts is this bar's
    8   total      NaN when unknown
    16  begun      monotonic time
    24  over       monotonic time, 0 while it is open
    32  text       UTF-8
    208 counts     two doubles

The head is written in one piece, and a reader that meets half of one finds that the check is wrong and keeps what it
has seen before. A count is one aligned double, written without a lock and as often as there are steps. A new bar takes
the other count, so nobody sees it with the count of the one before.
"""

import math
import mmap
import struct
import zlib
from typing import NamedTuple, Protocol, cast

NOTHING, COUNTED, WORDED = range(3)

_CHECK = struct.Struct("=I")
_HEAD = struct.Struct("=HBBddd")
_HEAD_BYTES = _CHECK.size + _HEAD.size
_COUNTS = 208
SLOT_BYTES = 224
TEXT_BYTES = _COUNTS - _HEAD_BYTES


class Counts(Protocol):
    """Two doubles."""

    def __getitem__(self, at: int, /) -> float: ...
    def __setitem__(self, at: int, n: float, /) -> None: ...


class Bar(NamedTuple):
    """A progress bar as it is on the board."""

    kind: int
    n: float
    total: float | None
    text: str
    """Description of a counted one; all that stands beside a worded one."""
    begun: float
    over: float
    which: int = 0
    """Where its count is."""


NO_BAR = Bar(NOTHING, 0.0, None, "", 0.0, 0.0)


class BarSlot:
    """A place for one bar."""

    def __init__(self, board: mmap.mmap, offset: int) -> None:
        self._board = board
        self._offset = offset
        self._seen = NO_BAR

    # -- in the rank -------------------------------------------------------------------------------------------------

    def counts(self) -> Counts:
        """Return the place of the two counts."""
        start = self._offset + _COUNTS
        return cast(Counts, memoryview(self._board)[start : start + 16].cast("d"))

    def write(self, bar: Bar) -> None:
        """Show this bar; its count has been written to its place already."""
        text = cut(bar.text)
        total = math.nan if bar.total is None or not math.isfinite(bar.total) else bar.total
        head = _HEAD.pack(len(text), bar.kind, bar.which, total, bar.begun, bar.over) + text
        self._board[self._offset : self._offset + _CHECK.size + len(head)] = _CHECK.pack(zlib.crc32(head)) + head

    def clear(self) -> None:
        """Show none."""
        self.write(NO_BAR)

    # -- in the launching process ------------------------------------------------------------------------------------

    def read(self) -> Bar:
        """Return the bar that is there, or what was there last when it is being written."""
        raw = self._board[self._offset : self._offset + SLOT_BYTES]
        length, kind, which, total, begun, over = _HEAD.unpack_from(raw, _CHECK.size)
        end = _HEAD_BYTES + length
        if end <= _COUNTS and zlib.crc32(raw[_CHECK.size : end]) == _CHECK.unpack_from(raw)[0]:
            (n,) = struct.unpack_from("d", raw, _COUNTS + 8 * which)
            text = raw[_HEAD_BYTES:end].decode()
            self._seen = Bar(kind, n, None if math.isnan(total) else total, text, begun, over, which)
        return self._seen


def cut(text: str) -> bytes:
    """Return the text as bytes that fit a slot; no character is cut in two."""
    return text.encode(errors="replace")[:TEXT_BYTES].decode(errors="ignore").encode()
