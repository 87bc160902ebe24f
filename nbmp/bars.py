"""`nbmp.progress`: a progress bar in whatever process the code runs.

in a rank                   a bar in the table of ranks; nothing is printed
in the launching process    tqdm's bar if tqdm is installed, else none
"""

from collections.abc import Iterable, Iterator
from typing import Any, Generic, Self, TypeVar, overload

from nbmp.launching.bars.opened import OpenBar
from nbmp.launching.bars.slots import COUNTED
from nbmp.launching.board import own_row

T = TypeVar("T")


@overload
def progress(iterable: None = None, total: float | None = None, desc: str = "") -> "ProgressBar[Any]": ...
@overload
def progress(iterable: Iterable[T], total: float | None = None, desc: str = "") -> "ProgressBar[T]": ...
def progress(iterable: Iterable[T] | None = None, total: float | None = None, desc: str = "") -> "ProgressBar[T]":
    """Return a progress bar: `for x in nbmp.progress(xs)`, or `bar.update(n)` with a total.

    In a rank it moves in the table of ranks (also of pools and processes: `nbmp.status`), at some 0.1 us a step. In the
    process that launches ranks it is tqdm's bar if tqdm is installed, and otherwise only iterates.

    Parameters
    ----------
    iterable
        What to iterate; may be left out.
    total
        Number of steps; None: the iterable's length, if it has one.
    desc
        What stands before the bar.
    """
    return ProgressBar(iterable, total, desc)


class ProgressBar(Generic[T]):
    """A progress bar; see `progress`. As a context manager it is closed at the end of the block."""

    def __init__(self, iterable: Iterable[T] | None, total: float | None, desc: str) -> None:
        self._iterable = iterable
        self._total = _length(iterable) if total is None else total
        self._desc = str(desc)
        self._bar = OpenBar(COUNTED, self._total, self._desc)
        self._tqdm = None if own_row() is not None else _tqdm(iterable, self._total, self._desc)

    @property
    def n(self) -> float:
        """Steps done."""
        return self._bar.counts[self._bar.at]

    @property
    def total(self) -> float | None:
        """Number of steps; None when unknown."""
        return self._total

    @property
    def desc(self) -> str:
        """What stands before the bar; may be set."""
        return self._desc

    @desc.setter
    def desc(self, text: str) -> None:
        self._desc = str(text)
        self._bar.change(total=self._total, text=self._desc)
        if self._tqdm is not None:
            self._tqdm.set_description(self._desc)

    def update(self, n: float = 1) -> None:
        """Go on by `n` steps."""
        self._bar.counts[self._bar.at] += n
        if self._tqdm is not None:
            self._tqdm.update(n)

    def close(self) -> None:
        """End it; it stays as it is. Again: nothing happens."""
        self._bar.close()
        if self._tqdm is not None:
            self._tqdm.close()

    def __iter__(self) -> Iterator[T]:
        """Iterate, one step each; closes at the end."""
        if self._iterable is None:
            raise TypeError("there is nothing to iterate: give progress an iterable, or call update(n)")
        bar = self._bar
        try:
            for item in self._iterable if self._tqdm is None else self._tqdm:
                yield item
                bar.counts[bar.at] += 1.0
        finally:
            self.close()

    def __len__(self) -> int:
        if self._total is None:
            raise TypeError("a progress bar without a total has no length")
        return int(self._total)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _length(iterable: Any) -> int | None:
    try:
        return len(iterable)
    except (TypeError, AttributeError):
        return None


def _tqdm(iterable: Any, total: float | None, desc: str) -> Any:
    try:
        from tqdm.auto import tqdm
    except ImportError:
        return None
    return tqdm(iterable, total=total, desc=desc or None)
