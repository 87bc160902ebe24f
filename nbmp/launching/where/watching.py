"""Which ranks wait, for what and since when: told from repeated looks that leave working ranks alone.

A look reads how the main thread of each rank is. One that sleeps, and has slept at the look before, is asked for its
stack; as long as the system says that it has not run since, that stack holds, and it is not asked again. So a wait
costs one question, however long it is, and its duration is sure: it may be short by the time between two looks. Waits
in which nbmp's own code looks now and then are asked for once a second. A rank that sleeps for other reasons is asked
more and more seldom, but once more when it has then slept in one piece for a second.
"""

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from nbmp import platforms
from nbmp.launching.frontends import Frontend
from nbmp.launching.left import left_by
from nbmp.launching.record import RankRecord
from nbmp.launching.where.asking import ask
from nbmp.launching.where.stacks import RankStack
from nbmp.launching.where.waits import POLLING
from nbmp.reports import Frame

ANSWER_SECONDS = 0.5
"""How long ranks have to answer; a look lasts no longer."""
AGAIN_SECONDS = 1.0
"""Between two questions to the same rank."""
SELDOM_SECONDS = 30.0
"""The same for one that sleeps but does not wait, at last."""

FEW = 5
"""How often a thread may have stopped running while it answered."""


class Wait(NamedTuple):
    """One rank that waits."""

    rank: int
    waits_for: str
    """In words: `a barrier`, `a queue (get)`, `a lock that rank 1 of launch-2 had when it was stopped`."""
    frame: Frame
    """Where, in the user's code."""
    seconds: float
    """How long at least."""

    def __str__(self) -> str:
        return f"rank {self.rank} waits for {self.waits_for} since {self.seconds:.1f} s: {self.frame.place()}"


@dataclass
class _Seen:
    """What is known of one rank."""

    switches: int = -1
    """How often its thread had stopped running at the last look, or after the last answer."""
    since: float = 0.0
    """When it was seen first with that number."""
    told_at: int = -1
    """That number after the last answer."""
    asleep_since: float | None = None
    """When it was seen first in a row of looks at which it slept."""
    ask_at: float = 0.0
    pause: float = AGAIN_SECONDS
    place: tuple[str, Frame] | None = None
    """What it waits for, and where."""
    begun: float = 0.0


class WaitWatch:
    """Looks at the ranks of one launch. Thread-safe."""

    def __init__(self, records: Sequence[RankRecord], frontend: Frontend) -> None:
        self._records = records
        self._frontend = frontend
        self._seen = {record: _Seen() for record in records}
        self._lock = threading.Lock()

    def look(self) -> tuple[Wait, ...]:
        """Return the ranks that wait, in rank order. Two looks at least are needed to see one."""
        with self._lock:
            now = time.monotonic()
            to_ask = [record for record in self._records if self._notice(record, now)]
            for record, answer in zip(to_ask, ask(to_ask, self._frontend, ANSWER_SECONDS), strict=True):
                self._take(record, answer)
            now = time.monotonic()
            return tuple(
                Wait(record.shown_as, _waits(record, what), frame, now - seen.begun)
                for record, seen in self._seen.items()
                if seen.place is not None
                for what, frame in [seen.place]
            )

    def asked(self, records: Sequence[RankRecord]) -> None:
        """Somebody else has asked these ranks where they are: those that waited have only run for the answer."""
        with self._lock:
            for record in records:
                seen = self._seen[record]
                status = platforms.thread_status(record.pid, record.pid) if record.pid and seen.place else None
                if status is not None and status.switches <= seen.switches + FEW:
                    seen.switches = seen.told_at = status.switches

    def _notice(self, record: RankRecord, now: float) -> bool:
        """Look at one rank; return whether it is to be asked."""
        seen = self._seen[record]
        status = platforms.thread_status(record.pid, record.pid) if record.pid and record.state == "running" else None
        polls = seen.place is not None and seen.place[0] in POLLING
        if status is not None and status.state == "R" and polls and now < seen.ask_at:
            return False
        if status is None or status.state != "S":
            seen.asleep_since = seen.place = None
            return False
        has_run = status.switches != seen.switches
        if has_run:
            seen.switches, seen.since = status.switches, now
            if not polls:
                seen.place = None
        slept_before, seen.asleep_since = seen.asleep_since is not None, seen.asleep_since or now
        if seen.place is None and seen.switches != seen.told_at and now >= seen.since + AGAIN_SECONDS:
            return True
        return slept_before and now >= seen.ask_at and (has_run or seen.place is None)

    def _take(self, record: RankRecord, answer: RankStack) -> None:
        seen, main = self._seen[record], answer.main
        status = platforms.thread_status(record.pid or 0, record.pid or 0)
        before, seen.switches = seen.switches, -1 if status is None else status.switches
        seen.told_at = seen.switches
        place = None
        if main is not None and main.waits_for and main.frames:
            place = main.waits_for, main.frames[-1]
        if place is not None and place != seen.place:
            polls = place[0] in POLLING
            # it ran for the answer, perhaps after a wait for the interpreter's lock; more often, and it waits anew
            is_same = polls or seen.switches <= before + FEW
            start = seen.asleep_since if polls else seen.since
            seen.begun = start if is_same and start is not None else time.monotonic()
        seen.place = place
        seen.pause = AGAIN_SECONDS if place is not None else min(2 * seen.pause, SELDOM_SECONDS)
        seen.ask_at = time.monotonic() + seen.pause


def _waits(record: RankRecord, what: str) -> str:
    """Return what it waits for, and who left that behind, which may have happened since it began to wait."""
    return f"{what} {left_by(record.notes.awaited())}".rstrip()
