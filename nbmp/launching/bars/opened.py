"""The progress bars that a rank has open, and which of them stand on the rank board. Every line runs in the rank.

The board has two places: for the bar that was opened first, and for the one opened last. A bar in between counts for
itself and takes the second place when the last one is closed. The first bar stays there when it is closed, until
another one is opened: that is how far the rank has come.

A child that a rank forks counts its inherited bars for itself, and has no place on the board.
"""

import array
import os
import threading
import time

from nbmp.launching.bars.slots import Bar, BarSlot, Counts
from nbmp.launching.board import own_row

_open: "list[OpenBar]" = []
_lock = threading.RLock()


class OpenBar:
    """One bar. `counts[at]` is how far it is: to be set at every step."""

    __slots__ = ("_bar", "_slot", "at", "counts")

    def __init__(self, kind: int, total: float | None, text: str, n: float = 0.0) -> None:
        self.counts: Counts = array.array("d", [n, 0.0])
        self.at = 0
        self._bar = Bar(kind, 0.0, total, text, time.monotonic(), 0.0)
        self._slot: BarSlot | None = None
        with _lock:
            _open.append(self)
            _arrange()

    def change(self, *, total: float | None, text: str, n: float | None = None) -> None:
        """Show this from now on, with a count if `n` is given: nobody sees one without the other."""
        with _lock:
            if n is not None:
                self.at = 1 - self.at
                self.counts[self.at] = n
                self._bar = self._bar._replace(which=self.at)
            self._bar = self._bar._replace(total=total, text=text)
            if self._slot is not None:
                self._slot.write(self._bar)

    def close(self) -> None:
        """It is over. Again: nothing happens."""
        with _lock:
            if self not in _open:
                return
            _open.remove(self)
            self._bar = self._bar._replace(over=time.monotonic())
            slot = self._slot
            if slot is not None:
                slot.write(self._bar)
                self.leave()
                row = own_row()
                if row is not None and slot is row.bars[1]:
                    slot.clear()
            _arrange()

    def take(self, slot: BarSlot) -> None:
        """Stand there from now on. The other count of the place is taken: nobody sees ours with the head before."""
        counts, n = slot.counts(), self.counts[self.at]
        at = 1 - slot.read().which
        counts[at] = n
        self._slot, self._bar = slot, self._bar._replace(which=at)
        slot.write(self._bar)
        self.counts, self.at = counts, at

    def leave(self) -> None:
        """Count for itself from now on."""
        self.counts, self.at, self._slot = array.array("d", [self.counts[self.at], 0.0]), 0, None

    def stands_at(self, slot: BarSlot) -> bool:
        """Return whether that is its place."""
        return self._slot is slot


def _arrange() -> None:
    """Give the first and the last open bar their places."""
    row = own_row()
    if row is None or not _open:
        return
    first, last = row.bars
    if not _open[0].stands_at(first):
        if _open[0].stands_at(last):  # the first one was closed before this one, which was opened after it
            _open[0].leave()
            last.clear()
        _open[0].take(first)
    for bar in _open[1:-1]:
        if bar.stands_at(last):
            bar.leave()
    if len(_open) > 1 and not _open[-1].stands_at(last):
        _open[-1].take(last)


def _forget() -> None:
    global _lock
    _lock = threading.RLock()
    for bar in _open:
        bar.leave()
    _open.clear()


os.register_at_fork(after_in_child=_forget)
