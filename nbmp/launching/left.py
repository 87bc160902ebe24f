"""What ranks had when they ended: locks, and places at conditions; nobody can give these back.

On the rank board each row has some notes, written by its rank (`nbmp.locks`), each as

    0    whether it has a lock (byte)
    1    whether it waits at the condition of that lock (byte)
    2    the lock: the end of its semaphore's name

The first one is what the rank's main thread waits for. When a rank has ended, what it still had is kept here, in the
launching process, to be told to those who wait for it.
"""

import mmap
import threading
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager

from nbmp.launching.private import in_forked_child

HAD, WAITED = range(2)
_KEY = 2

NOTE_BYTES = 16
NUMBER = 9
NOTES_BYTES = NUMBER * NOTE_BYTES
REMEMBERED = 1000
"""Locks of ranks that have ended, the latest."""


class Notes:
    """The notes of one row. A lock keeps its note while it has nothing to say, until another one needs the place."""

    def __init__(self, board: mmap.mmap, offset: int) -> None:
        self._board = board
        self._offset = offset
        self._places: dict[bytes, int] = {}

    @staticmethod
    def key(name: str | None) -> bytes:
        """Return how a semaphore is noted; empty when it has no name by which processes know it."""
        return b"" if name is None else name.encode()[_KEY - NOTE_BYTES :].ljust(NOTE_BYTES - _KEY, b"\0")

    # -- in the rank, by any thread, each time that a lock is taken and given back -------------------------------------

    def add(self, key: bytes, how: int) -> None:
        """Note it; not when there is no room."""
        place = self._places.get(key) or self._place_for(key)
        if place:
            self._board[place + how] = 1

    def remove(self, key: bytes, how: int) -> None:
        place = self._places.get(key)
        if place:
            self._board[place + how] = 0

    def _place_for(self, key: bytes) -> int:
        """Return where in the board that lock has its note from now on; 0 when all places are taken."""
        for place in range(self._offset + NOTE_BYTES, self._offset + NOTES_BYTES, NOTE_BYTES):
            if not self._board[place + HAD] and not self._board[place + WAITED]:
                self._places = {other: where for other, where in self._places.items() if where != place}
                self._board[place + _KEY : place + NOTE_BYTES] = key
                self._places[key] = place
                return place
        return 0

    @contextmanager
    def waiting(self, key: bytes) -> Iterator[None]:
        """Note, for this block, that the main thread waits for it."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        start = self._offset + _KEY
        self._board[start : start + len(key)] = key
        try:
            yield
        finally:
            self._board[start : start + len(key)] = bytes(len(key))

    # -- in the launching process --------------------------------------------------------------------------------------

    def awaited(self) -> bytes:
        """Return what the main thread waits for; zeros for nothing."""
        return self._read(0)[_KEY:]

    def all(self) -> list[tuple[bytes, int]]:
        """Return what the rank has, and HAD or WAITED."""
        notes = map(self._read, range(1, NUMBER))
        return [(note[_KEY:], how) for note in notes for how in (HAD, WAITED) if note[how]]

    def kinds(self) -> set[int]:
        """Return which of HAD and WAITED there are."""
        return {how for _, how in self.all()}

    def _read(self, number: int) -> bytes:
        start = self._offset + number * NOTE_BYTES
        return self._board[start : start + NOTE_BYTES]


_left: OrderedDict[bytes, str] = OrderedDict()


def remember(notes: Notes, who: str, state: str) -> None:
    """This rank, `rank 1 of launch-2`, has ended and is `stopped`, `killed`, ...: note what it had."""
    ended = f"was {state}" if state in ("stopped", "killed") else "ended"
    for key, how in notes.all():
        _left[key] = f"that {who} {'had' if how == HAD else 'waited for'} when it {ended}"
        _left.move_to_end(key)
    while len(_left) > REMEMBERED:
        _left.popitem(last=False)


def forget(key: bytes) -> None:
    """Somebody has given it back."""
    if _left:
        _left.pop(key, None)


def left_by(key: bytes) -> str:
    """Return `that rank 1 of launch-2 had when it was stopped`; empty when nobody that has ended had it."""
    return _left.get(key, "")


in_forked_child(_left.clear)
