"""How ranks that have ended are told of: the error that `join` raises, and lines about those that were stopped."""

import signal
from collections.abc import Sequence

from nbmp.errors import ProcessException, ProcessExitedException, ProcessRaisedException
from nbmp.launching.judging import signal_name
from nbmp.launching.left import HAD, WAITED
from nbmp.launching.record import RankRecord
from nbmp.reports import RUNNING, RankFailure, ranks_called


def error_of(ranks: Sequence[RankRecord], stopped_by: str, stopped: str) -> ProcessException | None:
    """Return the error of a launch whose ranks have ended: that of the rank that failed first, else of those stopped.

    `stopped_by` is who stopped ranks, `stopped` the line that says how; both are empty where nobody did.
    """
    failures = tuple(record.failure for record in ranks if record.failure is not None)
    if failures:
        error = _failure_error(min(failures, key=lambda failure: failure.when), ranks)
    elif any(record.state == "stopped" for record in ranks):
        error = _stop_error(ranks, stopped_by)
    else:
        return None
    error.failures = failures
    error.world_size = len(ranks)
    error.aftermath = _aftermath(ranks, stopped)
    return error


def stopped_line(
    asked: Sequence[RankRecord],
    killed: Sequence[RankRecord],
    stuck: Sequence[RankRecord],
    unread: Sequence[RankRecord],
    seconds: float,
) -> str:
    """Return what became of ranks that were stopped; empty when they ended by themselves meanwhile.

    Of those `asked` by SIGTERM some were `killed`, of which some are `stuck`. What the `unread` sent is read still.
    """
    obeyed = [record for record in asked if record not in killed]
    killed = [record for record in killed if record in asked]
    parts = []
    if obeyed:
        parts.append(f"{names_of(obeyed, 'rank')} ended {seconds:.1f} s after SIGTERM")
    if killed:
        parts.append(f"{names_of(killed, '' if obeyed else 'rank')} did not end on SIGTERM and got SIGKILL")
    if stuck:
        parts.append(f"{names_of(stuck)} cannot be killed (hanging in the kernel) and was given up")
    if unread:
        parts.append(f"the result of {names_of(unread, 'rank')} is still being unpickled by this process")
    return ", ".join([*parts, *filter(None, [unread_line(asked), left_line(asked)])])


def quicker_line(quicker: Sequence[RankRecord]) -> str:
    """Return what became of ranks that were to be stopped and had ended before."""
    done = [record for record in quicker if record.state == "done"]
    failed = [record for record in quicker if record.state != "done"]
    parts = [f"{names_of(done, 'rank')} finished"] if done else []
    return ", ".join([*parts, *([f"{names_of(failed, 'rank')} failed"] if failed else [])])


def unread_line(records: Sequence[RankRecord]) -> str:
    """Return which of these ranks waited at their exit for what they had put to be read; empty when none did."""
    unread = [record for record in records if record.is_unread]
    if not unread:
        return ""
    queue = "its queue" if len(unread) == 1 else "their queues"
    return f"{names_of(unread, 'rank')} waited for {queue} to be read (get from it before you join)"


def left_line(records: Sequence[RankRecord]) -> str:
    """Return which of these ranks had locks, or waited for what others are to tell, when they ended."""
    stopped = [record for record in records if record.ended]
    had = [record for record in stopped if HAD in record.notes.kinds()]
    waited = [record for record in stopped if WAITED in record.notes.kinds() and record not in had]
    parts = [f"{names_of(had, 'rank')} had a lock"] if had else []
    parts += [f"{names_of(waited, 'rank')} waited for an event, condition or barrier"] if waited else []
    return f"{' and '.join(parts)} (make a new one before you start again)" if parts else ""


def names_of(records: Sequence[RankRecord], noun: str = "") -> str:
    """Return `rank 1`, `ranks 1 and 3`, `ranks 0 to 7`."""
    return ranks_called([record.rank for record in records], noun)


def _failure_error(failure: RankFailure, ranks: Sequence[RankRecord]) -> ProcessException:
    rank, pid = failure.rank, failure.pid
    if failure.report is not None:
        while_doing = "" if failure.stage == RUNNING else f" while {failure.stage}"
        text = f"\n\n-- Process {rank} terminated with the following error{while_doing}:\n{failure.text}"
        error = ProcessRaisedException(text, rank, pid)
        error.__cause__ = ranks[rank].cause
        return error
    was = "" if failure.stage == RUNNING else f"It was {failure.stage}."
    tail = "".join(f"\n{line}" for line in (was, failure.hint) if line)
    code = failure.exit_code or 0
    if failure.signal_name is not None:
        message = f"process {rank} terminated with signal {failure.signal_name}{tail}"
        return ProcessExitedException(message, rank, pid, code, failure.signal_name)
    return ProcessExitedException(f"process {rank} terminated with exit code {code}{tail}", rank, pid, code)


def _stop_error(ranks: Sequence[RankRecord], stopped_by: str) -> ProcessExitedException:
    stopped = [record for record in ranks if record.state == "stopped"]
    first = stopped[0]
    code = (first.process and first.process.exitcode) or -signal.SIGTERM
    name = signal_name(-code)
    message = f"process {first.rank} terminated with signal {name}\nIt was stopped by {stopped_by}."
    error = ProcessExitedException(message, first.rank, first.pid, code, name)
    were = "were" if len(stopped) > 1 else "was"
    error.stopped = f"{names_of(stopped, 'rank')} of {len(ranks)} {were} stopped by {stopped_by}"
    return error


def _aftermath(ranks: Sequence[RankRecord], stopped: str) -> str:
    if not stopped:
        return ""
    done = [record for record in ranks if record.state == "done"]
    had_finished = f"{names_of(done, 'rank')} had finished, " if done else ""
    has_failed = any(record.failure is not None for record in ranks)
    return f"{'The other ranks were stopped' if has_failed else 'What became of the ranks'}: {had_finished}{stopped}."
