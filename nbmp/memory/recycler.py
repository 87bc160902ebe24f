"""Segments that this process made, used again as soon as nobody holds a lease on them.

Fresh memory is the whole cost of sending (copying into fresh pages runs at 1.2 GB/s, into pages that are mapped already
at 12), so a segment stays here from its first use on. Which of them are free is asked of the kernel when one is wanted,
a few at most for each request. What is kept is bounded in bytes and number at once, and in time by the janitor.
"""

import os
import threading
import time
from collections import deque

from nbmp.memory.room import kept_count
from nbmp.memory.segment import Segment

KEPT_BYTES = 1 << 30
KEPT_COUNT = 128
SCAN = 4
"""How many segments of the right size are asked whether they are free."""


class Recycler:
    """The segments of this process, by size class."""

    def __init__(self) -> None:
        self._shelves: dict[int, deque[tuple[Segment, float]]] = {}
        self._lock = threading.Lock()
        self.made = 0
        self.reused = 0

    def take(self, size: int) -> Segment:
        """Return a segment of at least `size` bytes that nobody holds, off the shelf until it is put back."""
        wanted = size_class(size)
        with self._lock:
            shelf = self._shelves.get(wanted, ())
            for _ in range(min(SCAN, len(shelf))):
                segment, since = shelf.popleft()  # type: ignore[union-attr]  # not empty, so no tuple
                if segment.is_free():
                    self.reused += 1
                    return segment
                shelf.append((segment, since))  # type: ignore[union-attr]
            self.made += 1
        return Segment.create(wanted, "message")

    def put_back(self, segment: Segment) -> None:
        """Put a segment on the shelf, lent or not; beyond the bounds let it go: it ends with its last lease."""
        with self._lock:
            kept = [(size, len(shelf)) for size, shelf in self._shelves.items()]
            fits = sum([size * count for size, count in kept]) + segment.size <= KEPT_BYTES
            if fits and sum([count for _, count in kept]) < kept_count(KEPT_COUNT):
                self._shelves.setdefault(segment.size, deque()).append((segment, time.monotonic()))

    def trim(self, idle: float = 0.0) -> int:
        """Let go of free segments that were put back more than `idle` seconds ago; return how many are left."""
        latest = time.monotonic() - idle
        given_up = []
        with self._lock:
            for wanted, shelf in list(self._shelves.items()):
                kept: deque[tuple[Segment, float]] = deque()
                for segment, since in shelf:
                    if since > latest or not segment.is_free():
                        kept.append((segment, since))
                    else:
                        given_up.append(segment)
                if kept:
                    self._shelves[wanted] = kept
                else:
                    del self._shelves[wanted]
            left = sum([len(shelf) for shelf in self._shelves.values()])
        for segment in given_up:
            segment.give_back_pages()
        return left

    def let_go(self) -> None:
        """Keep nothing: what is lent ends with its last lease."""
        with self._lock:
            self._shelves.clear()

    def is_used(self) -> bool:
        """Return whether anything is on the shelf."""
        with self._lock:
            return any(self._shelves.values())

    def segments(self) -> list[Segment]:
        """Return all that are on the shelf."""
        with self._lock:
            return [segment for shelf in self._shelves.values() for segment, _ in shelf]


def size_class(size: int) -> int:
    """Return the size of the segments that hold `size` bytes: four classes for each power of two, whole pages."""
    if size <= 4096:
        return 4096
    step = max(4096, 1 << ((size - 1).bit_length() - 3))
    return -(-size // step) * step


recycler = Recycler()


def _forget() -> None:
    """In a forked child: the parent's segments are the parent's to use again."""
    recycler.__init__()  # type: ignore[misc]  # the same object: others refer to it


os.register_at_fork(after_in_child=_forget)
