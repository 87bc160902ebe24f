"""Taking snapshots of a launch: from what the launching process knows, and from the operating system."""

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

from nbmp.monitoring.gauges import FIRST, Gauge, Rounds
from nbmp.monitoring.snapshots import ALIVE, LaunchSnapshot, RankSnapshot

if TYPE_CHECKING:
    from nbmp.launching.record import RankRecord
    from nbmp.launching.where.watching import Wait

WAITS_EVERY = 0.8
WAIT_SECONDS = 1.0
"""A rank that waits for less counts as running: most ranks wait for a moment now and then."""
TAIL = 12
"""Lines of a rank's output in a snapshot."""
LONGEST = 500
"""Characters of such a line."""


class Tail(NamedTuple):
    """The end of what a rank has written."""

    lines: int
    text: tuple[str, ...]


class Ranks(Protocol):
    """What is looked at: a launch, or a pool."""

    kind: str

    @property
    def ranks(self) -> Sequence["RankRecord"]: ...
    @property
    def start_method(self) -> str: ...
    @property
    def start_method_reason(self) -> str: ...


class Sampler:
    """Takes snapshots of one launch, or of a pool. Use it from one thread."""

    def __init__(self, context: Ranks):
        self._context = context
        self._gauges: dict[RankRecord, Gauge] = {}
        self._rounds = Rounds()
        self._tails: dict[RankRecord, Tail] = {}
        self._waits: dict[int, Wait] = {}
        self._next_waits = time.monotonic() + FIRST

    def snapshot(self) -> LaunchSnapshot:
        """Return how things are now. CPU and memory are measured about once a second, whatever the rate of
        calls."""
        records = tuple(self._context.ranks)
        self._gauges = {record: self._gauges.get(record) or Gauge() for record in records}
        self._rounds.measure([(rank.pid, gauge) for rank, gauge in self._gauges.items() if rank.state in ALIVE])
        self._look_for_waits()
        self._tails = {record: self._tail(record) for record in records}
        ranks = tuple(
            row(rank, gauge, self._waits.get(rank.shown_as), self._tails[rank]) for rank, gauge in self._gauges.items()
        )
        return LaunchSnapshot(
            ranks,
            self._context.start_method,
            self._context.start_method_reason,
            max((rank.seconds for rank in ranks), default=0.0),
            "worker" if self._context.kind == "pool" else "rank",
        )

    def _tail(self, record: "RankRecord") -> Tail:
        lines = record.output.lines
        before = self._tails.get(record)
        if before is not None and before.lines == lines:
            return before
        return Tail(lines, tuple(line[:LONGEST] for line in record.output.tail(TAIL)))

    def _look_for_waits(self) -> None:
        look: Callable[[], tuple[Wait, ...]] | None = getattr(self._context, "waits", None)  # a pool has none
        now = time.monotonic()
        if look is not None and now >= self._next_waits:
            self._waits = {wait.rank: wait for wait in look() if wait.seconds >= WAIT_SECONDS}
            self._next_waits = now + WAITS_EVERY


def row(record: "RankRecord", gauge: Gauge, wait: "Wait | None" = None, tail: "Tail | None" = None) -> RankSnapshot:
    """Return a rank at this moment, with what the gauge has measured."""
    state, failure = record.state, record.failure
    is_alive = state in ALIVE
    return RankSnapshot(
        record.shown_as,
        record.pid,
        state,
        record.seconds,
        gauge.cpu if is_alive else None,
        gauge.memory if is_alive else None,
        record.last_line,
        failure.summary if failure is not None else "",
        progress=record.progress,
        shared=gauge.shared if is_alive else None,
        gpu_memory=gauge.gpu_memory if is_alive else None,
        wait=wait if state == "running" else None,
        lines=record.output.lines if tail is None else tail.lines,
        tail=() if tail is None else tail.text,
        stopping=record.stopping and is_alive,
        error=failure,
        unread=is_alive and record.is_unread,
    )
