"""How far a rank is, read off the rank board by the launching process."""

import math
import time
from typing import NamedTuple

from nbmp.launching.bars.slots import COUNTED, NOTHING, Bar
from nbmp.launching.board import Row

LARGE = 1e12
"""A number from here on is not written out."""


class Progress(NamedTuple):
    """How far a rank is."""

    n: float
    """Steps done, of the outermost progress bar; 0 when it has counted to what is no number."""
    total: float | None
    """Of so many; None when nobody knows."""
    text: str
    """What stands beside the bar, ready to be shown: `epoch: 34/100 [00:10<00:20, 3.40it/s]`. Of nested bars, that of
    the innermost one follows after a middle dot."""


def progress_of(row: Row, now: float | None = None) -> Progress | None:
    """Return how far the rank of this row is, or was at monotonic time `now`; None when it has shown no bar."""
    outer, inner = (slot.read() for slot in row.bars)
    if outer.kind == NOTHING:
        return None
    texts = [worded(bar, time.monotonic() if now is None else now) for bar in (outer, inner) if bar.kind != NOTHING]
    return Progress(outer.n if math.isfinite(outer.n) else 0.0, outer.total, " · ".join(texts))


def worded(bar: Bar, now: float) -> str:
    """Return what stands beside a bar."""
    if bar.kind != COUNTED:
        return bar.text
    seconds = max(0.0, (bar.over or now) - bar.begun)
    label = f"{bar.text}: " if bar.text else ""
    rate = bar.n / seconds if seconds > 0 else 0.0
    pace = _pace(rate)
    if bar.total is None:
        return f"{label}{_number(bar.n)} [{clock(seconds)}, {pace}]"
    left = clock(max(0.0, bar.total - bar.n) / rate) if 0 < rate < math.inf else "?"
    return f"{label}{_number(bar.n)}/{_number(bar.total)} [{clock(seconds)}<{left}, {pace}]"


def _pace(rate: float) -> str:
    if not 0 < rate < math.inf:
        return "?it/s"
    if rate < 1:
        return f"{1 / rate:.2f}s/it" if 1 / rate < LARGE else f"{1 / rate:.4g}s/it"
    if rate < 100:
        return f"{rate:.2f}it/s"
    return f"{rate:,.0f}it/s" if rate < LARGE else f"{rate:.4g}it/s"


def _number(value: float) -> str:
    return f"{value:.0f}" if value.is_integer() and abs(value) < LARGE else f"{value:.4g}"


def clock(seconds: float) -> str:
    """Return minutes and seconds, `00:12`, with hours where there are any; `?` of what is no time."""
    if not abs(seconds) < LARGE:
        return "?"
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes:02}:{rest:02}"
