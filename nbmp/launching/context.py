"""The ranks of one launch, seen from the launching process."""

import itertools
import os
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from typing import Any

from nbmp.errors import ProcessException
from nbmp.launching import unjoined
from nbmp.launching.changes import Changes
from nbmp.launching.default_method import StartMethod
from nbmp.launching.frontends import Frontend, Sink
from nbmp.launching.interrupted import tell_of_ranks
from nbmp.launching.interrupts import Presses, held_back
from nbmp.launching.left import remember
from nbmp.launching.outcomes import error_of
from nbmp.launching.process import RankProcess
from nbmp.launching.record import RankRecord
from nbmp.launching.registry import title
from nbmp.launching.stopping import INTERRUPT_SECONDS, TERM_SECONDS, all_ended, end
from nbmp.launching.supervisor import Supervisor
from nbmp.launching.where.asking import SECONDS, ask
from nbmp.launching.where.stacks import Stacks
from nbmp.launching.where.watching import Wait, WaitWatch

TABLE = "nbmp.monitoring.showing"
"""Module with the function `table_now(context)`, which is above this one."""

_counter = itertools.count()


class ProcessContext:
    """The ranks of one launch.

    Attributes
    ----------
    processes : list of multiprocessing.process.BaseProcess
        In rank order.
    sentinels : dict of int to int
        Descriptor that becomes readable when a rank has ended -> rank; ranks that have ended are removed.
    ranks : tuple of RankRecord
        State, pid, seconds, last line, result and failure of each rank.
    results : list
        What the function returned in each rank, in rank order; None for a rank that has not returned (yet:
        `ranks[k].state` tells).
    start_method, start_method_reason : str
    finished : threading.Event
        Set when all ranks have ended and all they wrote has been shown.
    name : str
        What its user calls it; empty unless given.
    aftermath : str
        What became of the ranks that were stopped, in a line; empty when none were.
    """

    kind = "launch"
    number = 0
    name = ""

    def __init__(
        self, records: Sequence[RankRecord], choice: StartMethod, frontend: Frontend, sink: Sink, daemon: bool
    ):
        self.ranks = tuple(records)
        self.processes: list[RankProcess] = [record.process for record in records if record.process is not None]
        self.sentinels = {process.sentinel: rank for rank, process in enumerate(self.processes)}
        self.start_method, self.start_method_reason = choice
        self.daemon = daemon
        self.frontend = frontend
        self.finished = threading.Event()
        self._owner = os.getpid()
        self._has_cleaner = self._is_cleaned_up = self._is_told = False
        self._joins: list[None] = []
        """One entry for each `join` that waits."""
        self._at_end: list[Callable[[], None]] = []
        self._stopped_by = self._stopped = ""
        self._number = next(_counter)
        self.aftermath = ""
        self._changes = Changes(frontend)
        self._watch = WaitWatch(self.ranks, frontend)
        if records:
            Supervisor(records, frontend, sink, self._changes.news, self._rank_ended).start()
        else:
            self.finished.set()

    def __repr__(self) -> str:
        count = Counter(record.state for record in self.ranks)
        states = ", ".join(f"{number} {state}" for state, number in count.items())
        return f"<nbmp.{type(self).__name__}: {self.world_size} ranks by {self.start_method}, {states or 'none there'}>"

    @property
    def world_size(self) -> int:
        return len(self.ranks)

    @property
    def results(self) -> list[Any]:
        """What the function returned in each rank, in rank order; None for ranks that have not returned."""
        return [record.result for record in self.ranks]

    def take_results(self) -> list[Any]:
        """Return the results and forget them: whoever called has them now."""
        results = self.results
        for record in self.ranks:
            record.result = None
        return results

    def output(self, rank: int) -> str:
        """Return what a rank has written so far, whole lines of stdout and stderr in the order in which they were read.

        Of a flood, megabytes, the beginning and the end are kept (16 MB for all ranks together); a line then says how
        many are left out. IndexError when there is no such rank.
        """
        (chosen,) = self._chosen([rank])
        return self.ranks[chosen].output.text()

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """Show the table of ranks as text, where IPython shows this as the value of a cell."""
        printer.text(import_module(TABLE).table_now(self))

    def pids(self) -> list[int | None]:
        """Return the process ids in rank order."""
        return [process.pid for process in self.processes]

    def join(self, timeout: float | None = None, grace_period: float | None = None) -> bool:
        """Wait until all ranks have ended well, or one has failed.

        Parameters
        ----------
        timeout : float, optional
            Seconds to wait; None waits without a bound, 0 or less only looks. Does not bound the stopping after a
            failure.
        grace_period : float, optional
            After a failure: seconds in which the other ranks may end by themselves, and once more between SIGTERM and
            SIGKILL. None: SIGTERM at once, SIGKILL 30 s later.

        Returns
        -------
        bool
            True when all have ended well, False when some still run after `timeout`. Said again by every later call.

        Raises
        ------
        ProcessRaisedException
            When the function raised in the rank that failed first by time; the others' failures are in `.failures`.
        ProcessExitedException
            When that rank ended by a signal or with an exit code other than 0, or when ranks were stopped before
            their end.
        KeyboardInterrupt
            When interrupted; all ranks have been stopped then (SIGTERM, one second, SIGKILL), which its text tells.
        """
        self._joins.append(None)
        try:
            if not self.follow(timeout, grace_period):
                return False
            self.mark_told()
            error = self.error()
        finally:
            self._joins.pop()
        if error is None:
            return True
        try:
            raise error
        finally:
            del error  # it refers to this frame, and so to its caller's: both would stay until garbage is collected

    def follow(self, timeout: float | None = None, grace_period: float | None = None) -> bool:
        """As `join`, but a failure is not raised: `error` returns it afterwards. False when some still run."""
        self._assert_own()
        with held_back() as presses:
            try:
                self._changes.wait_or_raise(self._is_over, timeout, presses)
                if self._failed():
                    self._clean_up(grace_period, presses)
            except KeyboardInterrupt as press:
                self.stop_for(press)
                raise
        return self._is_over()

    def error(self) -> ProcessException | None:
        """Return what `join` raises, now that `follow` has returned. Not kept: it refers to frames of its callers."""
        with self._changes.news:
            return error_of(self.ranks, self._stopped_by, self._stopped)

    def mark_told(self) -> None:
        """Somebody has heard how they ended: nothing is said at exit."""
        self._is_told = True
        unjoined.forget(self._number)

    @property
    def is_heard(self) -> bool:
        """Whether somebody has heard how they ended, or waits to hear it, in `join`."""
        return self._is_told or bool(self._joins)

    def call_at_end(self, action: Callable[[], None]) -> None:
        """Have `action` called, quickly done, when the last rank has ended and before any `join` returns; or now."""
        with self._changes.news:
            if not self.finished.is_set():
                self._at_end.append(action)
                return
        action()

    def stop(
        self, grace_period: float = TERM_SECONDS, *, ranks: Iterable[int] | None = None, reason: str = "stop()"
    ) -> None:
        """End ranks that still run: SIGTERM, `grace_period` seconds, SIGKILL; returns when they are gone.

        A KeyboardInterrupt meanwhile kills at once. A rank that the kernel does not let die is given up after 5 s more,
        one whose result is still being unpickled after 1 s. What became of them is in `aftermath`.

        Parameters
        ----------
        ranks
            None: all of them. The others go on.
        """
        self._assert_own()
        chosen = [self.ranks[rank] for rank in self._chosen(ranks)]
        with held_back() as presses:
            untold = [record for record in chosen if not record.ended]
            if untold:
                self._stopped_by = self._stopped_by or reason
                self._stopped, self.aftermath = end(untold, self.ranks, self._changes, grace_period, presses)

    def stop_for(self, press: BaseException) -> None:
        """End the ranks because of an interrupt, which then says what became of them, or of another error."""
        self.stop(INTERRUPT_SECONDS, reason="an interrupt")
        if isinstance(press, KeyboardInterrupt):
            tell_of_ranks(press, self.aftermath)

    def failure_line(self) -> str:
        """Return what is said at exit if nobody joins; empty without a failure."""
        failures = [record.failure for record in self.ranks if record.failure is not None and not record.stopping]
        if not failures:
            return ""
        first = min(failures, key=lambda failure: failure.when)
        return f"rank {first.rank} (pid {first.pid}) failed and its launch was never joined: {first.summary}"

    def halt(
        self, grace_period: float = TERM_SECONDS, ranks: Iterable[int] | None = None, *, reason: str = "stop()"
    ) -> str:
        """As `stop`; return in a line what became of them."""
        told = self.aftermath
        self.stop(grace_period, ranks=ranks, reason=reason)
        return "had ended before" if self.aftermath is told else self.aftermath

    def stacks(self, ranks: Iterable[int] | None = None, *, timeout: float = SECONDS) -> Stacks:
        """Return where the ranks are at this moment: what prints as their Python stacks.

        Whatever they do is answered, C code that holds the interpreter's lock included; a rank that has ended, is
        stopped or cannot answer says so. Callable from any thread, also while another one is in `join`. The question is
        a signal, so a function of a C library that waits may return early, as `sleep` of C does; Python's own go on.

        Parameters
        ----------
        ranks
            None: all of them.
        timeout
            Seconds that all of them together have to answer.
        """
        self._assert_own()
        records = [self.ranks[rank] for rank in self._chosen(ranks)]
        told = Stacks(tuple(ask(records, self.frontend, timeout)))
        self._watch.asked(records)
        return told

    def waits(self) -> tuple[Wait, ...]:
        """Return which ranks wait for a queue, a barrier, a lock, ..., where in the user's code, and how long at least.

        From repeated calls: the first one sees nothing yet, and a wait counts from the call that saw it first. A rank
        that works is not disturbed, one that waits is asked once.
        """
        self._assert_own()
        return self._watch.look()

    def _chosen(self, ranks: Iterable[int] | None) -> Sequence[int]:
        """Return these ranks, all for None; IndexError names one that there is not."""
        everyone = range(self.world_size)
        chosen = everyone if ranks is None else list(ranks)
        for rank in chosen:
            if rank not in everyone:
                raise IndexError(f"there is no rank {rank}: they are numbered 0 to {self.world_size - 1}")
        return chosen

    def _rank_ended(self, record: RankRecord) -> None:
        """Called by the supervisor, once for each rank."""
        process = self.processes[record.rank]
        self.sentinels.pop(process.sentinel, None)
        process.join()  # it has ended: multiprocessing forgets it
        remember(record.notes, self.called(record), record.state)
        if all_ended(self.ranks):
            self._finish()

    def called(self, record: RankRecord) -> str:
        """Return what a person calls one of its ranks who does not know which launch is meant."""
        return f"rank {record.rank} of {title(self)}" if self.name or self.number else f"rank {record.rank}"

    def _finish(self) -> None:
        line = not self._is_told and self.failure_line()
        if line:
            unjoined.remember(self._number, line)
        for action in self._at_end:
            action()
        self.finished.set()

    def _is_over(self) -> bool:
        return self._failed() or all_ended(self.ranks)

    def _failed(self) -> bool:
        return any(record.failure is not None for record in self.ranks)

    def _clean_up(self, grace_period: float | None, presses: Presses) -> None:
        """After a failure: let the others end or end them, in bounded time. One thread does it, others wait for it."""
        while not self._is_cleaned_up:
            with self._changes.news:
                is_ours, self._has_cleaner = not self._has_cleaner, True
            if not is_ours:
                self._changes.wait_or_raise(lambda: not self._has_cleaner, None, presses)
                continue
            try:
                if grace_period is not None:
                    self._changes.wait_or_raise(lambda: all_ended(self.ranks), grace_period, presses)
                self.stop(TERM_SECONDS if grace_period is None else grace_period, reason="the failure")
                self._is_cleaned_up = True
            finally:
                with self._changes.news:
                    self._has_cleaner = False
                    self._changes.news.notify_all()

    def _assert_own(self) -> None:
        if os.getpid() != self._owner:
            raise AssertionError("only the process that started ranks can wait for them or stop them")


class SpawnContext(ProcessContext):
    """torch's older name of `ProcessContext`."""
