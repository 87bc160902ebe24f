"""How far ranks are, as a line now and then: where no table of ranks shows it."""

from collections.abc import Iterable
from dataclasses import dataclass

from nbmp.launching.bars.progress import Progress
from nbmp.launching.frontends import Chunk
from nbmp.launching.record import RankRecord

EVERY = 10.0
"""Seconds between two lines of one rank."""


@dataclass
class _Rank:
    record: RankRecord
    last: Progress | None = None


class Milestones:
    """The lines of one launch."""

    def __init__(self, records: Iterable[RankRecord], now: float) -> None:
        self._ranks = [_Rank(record) for record in records]
        self.due = now + EVERY
        """When `lines` is to be called next."""

    def lines(self, now: float) -> list[Chunk]:
        """Return a line for each rank that has gone on since the last call."""
        self.due = now + EVERY
        return [chunk for rank in self._ranks if (chunk := _line(rank)) is not None]


def _line(rank: _Rank) -> Chunk | None:
    seen, before = rank.record.progress, rank.last
    rank.last = seen
    if seen is None or rank.record.ended or (before is not None and before[:2] == seen[:2]):
        return None
    stream = rank.record.streams[1]
    return Chunk(stream.rank, "stderr", f"{seen.text}\n", stream.label)
