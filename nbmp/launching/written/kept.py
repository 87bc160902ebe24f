"""What a rank has written, kept for later in bounded memory: the beginning and the end."""

from collections import deque
from typing import NamedTuple

LAUNCH_BYTES = 16 << 20
"""For all ranks of a launch."""
MOST_BYTES = 4 << 20
LEAST_BYTES = 64 << 10
"""For one rank."""

_PER_BLOCK = 200
"""Bytes that a block costs besides its text."""
_SMALL = 4096
"""Bytes up to which blocks are put together."""


class _Block(NamedTuple):
    first: int
    """How many lines come before it."""
    lines: int
    text: bytes


class KeptOutput:
    """The lines of one rank, stdout and stderr in the order in which they were read.

    One thread adds, any thread reads.
    """

    def __init__(self, most: int = MOST_BYTES) -> None:
        self.lines = 0
        """Lines so far, with those that are not kept any more."""
        self._most_head = most // 4
        self._most_tail = most - self._most_head
        self._head: list[_Block] = []
        self._tail: deque[_Block] = deque()
        self._head_bytes = self._tail_bytes = 0

    @property
    def size(self) -> int:
        """Bytes that it takes."""
        return self._head_bytes + self._tail_bytes

    def add(self, text: str) -> None:
        """Keep whole lines; `text` ends with a newline."""
        block = _Block(self.lines, text.count("\n"), text.encode())
        self.lines += block.lines
        if not self._tail and self._head_bytes + _cost(block) <= self._most_head:
            self._head_bytes += _put(self._head, block)
            return
        self._tail_bytes += _put(self._tail, _last_lines(block, self._most_tail))
        while self._tail_bytes > self._most_tail and len(self._tail) > 1:
            self._tail_bytes -= _cost(self._tail.popleft())

    def tail(self, count: int) -> list[str]:
        """Return the last lines that are kept, at most `count`."""
        found: list[str] = []
        for block in reversed((*self._head, *self._tail)):
            if len(found) >= count:
                break
            found = [*block.text.decode()[:-1].split("\n")[-count:], *found]
        return found[-count:] if count > 0 else []

    def text(self) -> str:
        """Return all that is kept; where lines are missing, one says how many."""
        tail, head = tuple(self._tail), tuple(self._head)
        before = b"".join(block.text for block in head)
        after = b"".join(block.text for block in tail)
        known = head[-1].first + head[-1].lines if head else 0
        missing = tail[0].first - known if tail else 0
        gap = (
            f"\N{HORIZONTAL ELLIPSIS} {missing:,} lines left out \N{HORIZONTAL ELLIPSIS}\n".encode() if missing else b""
        )
        return (before + gap + after).decode()


def share_of(world_size: int) -> int:
    """Return the bytes that are kept of each of so many ranks."""
    return max(LEAST_BYTES, min(MOST_BYTES, LAUNCH_BYTES // max(1, world_size)))


def _put(blocks: "list[_Block] | deque[_Block]", block: _Block) -> int:
    """Add a block, to the last one if both are small; return what it costs."""
    if blocks and len(blocks[-1].text) + len(block.text) <= _SMALL:
        last = blocks[-1]
        blocks[-1] = _Block(last.first, last.lines + block.lines, last.text + block.text)
        return len(block.text)
    blocks.append(block)
    return _cost(block)


def _last_lines(block: _Block, most: int) -> _Block:
    """Return the last whole lines of a block, of `most` bytes together."""
    if len(block.text) <= most:
        return block
    text = block.text[-most:].partition(b"\n")[2]
    lines = text.count(b"\n")
    return _Block(block.first + block.lines - lines, lines, text)


def _cost(block: _Block) -> int:
    return len(block.text) + _PER_BLOCK
