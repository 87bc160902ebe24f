"""Ending ranks that still run, in bounded time, and what became of them.

    SIGTERM     the grace period      those that end by themselves
    SIGKILL     `KILL_SECONDS`        the others, but for those that hang in the kernel
    -           `READ_SECONDS`        until what they had sent is read, which runs the user's code and may hang

A rank that has gone and one whose end is known (`RankRecord.has_gone`, `.ended`) are two things: in between the
supervisor reads and shows what it left behind.
"""

import signal
import time
from collections.abc import Sequence

from nbmp.launching.changes import Changes
from nbmp.launching.interrupts import Presses
from nbmp.launching.outcomes import quicker_line, stopped_line
from nbmp.launching.record import RankRecord

TERM_SECONDS = 30.0
"""From SIGTERM to SIGKILL after a failure, unless a grace period is given (torch's figure)."""
INTERRUPT_SECONDS = 1.0
"""From SIGTERM to SIGKILL after an interrupt."""
KILL_SECONDS = 5.0
"""How long to wait for the end of a killed process: one that hangs in the kernel is given up."""
READ_SECONDS = 1.0
"""How long to wait for an outcome that is being unpickled."""


def end(
    untold: Sequence[RankRecord],
    everyone: Sequence[RankRecord],
    changes: Changes,
    grace_period: float,
    presses: Presses,
) -> tuple[str, str]:
    """End the ranks `untold`, whose end is not known yet, of a launch whose ranks are `everyone`.

    Returns in a line what became of those that were stopped, empty when none were, and in another one what became of
    all of them. An interrupt meanwhile kills at once.
    """

    def living() -> list[RankRecord]:
        return [record for record in untold if not record.has_gone]

    begun, before = time.monotonic(), presses.came
    asked = living()
    _signal(asked, signal.SIGTERM)
    changes.wait(lambda: not living() or presses.came > before, grace_period, looks=True)
    killed = living()
    _signal(killed, signal.SIGKILL)
    changes.wait(lambda: not living(), KILL_SECONDS, looks=True)
    seconds, stuck = time.monotonic() - begun, living()
    awaited = [record for record in untold if record not in stuck]
    changes.wait(lambda: all_ended(awaited) or _unread(everyone, READ_SECONDS), KILL_SECONDS, looks=True)
    stopped = [record for record in asked if not record.ended or record.state == "stopped"]
    line = stopped_line(stopped, killed, stuck, _unread(everyone), seconds)
    quicker = [record for record in untold if record.ended and record not in stopped]
    return line, ", ".join(filter(None, (line, quicker_line(quicker))))


def all_ended(records: Sequence[RankRecord]) -> bool:
    """Return whether the end of all of them is known."""
    return all(record.ended for record in records)


def _unread(everyone: Sequence[RankRecord], seconds: float = 0.0) -> list[RankRecord]:
    """Return the rank whose outcome is being unpickled, for so long by now."""
    now = time.monotonic()
    return [record for record in everyone if record.read_since is not None and now - record.read_since >= seconds]


def _signal(records: Sequence[RankRecord], number: signal.Signals) -> None:
    for record in records:
        record.stopping = True
        process = record.process
        if process is None:  # it has ended since
            continue
        if number == signal.SIGKILL:
            process.kill()
        else:
            process.terminate()
