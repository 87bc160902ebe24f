"""What the buttons of a table of ranks do, and what came of it. No widgets here.

thread of a click     `stop`, `kill`, `where`: may take a while
nbmp-stop             one for each press of Stop: waits until the ranks are gone, and kills them after `GRACE`
updater               reads `stacks` and `where_all`, which are replaced, never changed
"""

import threading
import time
from collections.abc import Collection, Mapping
from contextlib import suppress

from nbmp.launching.context import ProcessContext
from nbmp.launching.record import RankRecord
from nbmp.launching.registry import Group
from nbmp.launching.stopping import TERM_SECONDS
from nbmp.launching.where.asking import SECONDS
from nbmp.monitoring.snapshots import clock
from nbmp.notebook.ranks.stackview import stack_html, stacks_html

GRACE = TERM_SECONDS
"""Seconds from Stop to SIGKILL, if nobody presses Kill before."""

DOUBLE_CLICK = 0.7
"""Seconds in which a second press means the first one."""


class Actions:
    """The actions on one launch or pool."""

    def __init__(self, group: Group) -> None:
        self._group = group
        self._pressed = 0.0
        self.stacks: Mapping[int, str] = {}
        """Where ranks are, as HTML: those that were asked for one by one."""
        self.where_all = ""
        """Where all are, as HTML."""

    @property
    def can_stop_one(self) -> bool:
        """Whether one can be ended without the others: a pool would replace its worker."""
        return isinstance(self._group, ProcessContext)

    def living(self, ranks: Collection[int] | None = None) -> list[RankRecord]:
        """Return those of these ranks, all for None, that run."""
        return [
            record
            for record in self._group.ranks
            if not record.ended and record.failure is None and (ranks is None or record.shown_as in ranks)
        ]

    def is_stopping(self, ranks: Collection[int] | None = None) -> bool:
        """Return whether all that run of these were asked to end."""
        found = self.living(ranks)
        return bool(found) and all(record.stopping for record in found)

    def stop(self, ranks: Collection[int] | None = None) -> None:
        """Ask ranks to end; at the second time, make them, unless it was a double click. Returns at once."""
        before, self._pressed = self._pressed, time.monotonic()
        if self.is_stopping(ranks):
            if self._pressed > before + DOUBLE_CLICK:
                self.kill(ranks)
        else:
            args = (GRACE, ranks)
            threading.Thread(target=self._end, args=args, name="nbmp-stop", daemon=True).start()

    def kill(self, ranks: Collection[int] | None = None) -> None:
        """End ranks now."""
        self._end(0.0, ranks)

    def where(self, rank: int) -> None:
        """Ask where a rank is; at the second time, forget it again."""
        if rank in self.stacks:
            self.stacks = {other: text for other, text in self.stacks.items() if other != rank}
            return
        (told,) = self._group.stacks([rank], timeout=SECONDS)
        self.stacks = {**self.stacks, rank: stack_html(told)}

    def where_are(self, ranks: Collection[int] | None = None) -> None:
        """Ask where those that run are; at the second time, forget it again."""
        if self.where_all:
            self.where_all = ""
            return
        alive = [record.shown_as for record in self.living(ranks)]
        at = clock(max((record.seconds for record in self._group.ranks), default=0.0))
        told = self._group.stacks(alive, timeout=SECONDS) if alive else ()
        self.where_all = stacks_html(tuple(told), at)

    def _end(self, grace: float, ranks: Collection[int] | None) -> None:
        group = self._group
        if isinstance(group, ProcessContext):
            chosen = None if ranks is None else [record.rank for record in self.living(ranks)]
            with suppress(AssertionError):
                group.stop(grace, ranks=chosen, reason="a button in the notebook")
        else:
            group.halt(grace)
