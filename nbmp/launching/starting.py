"""The steps of every launch, of ranks, of a pool's workers and of single processes alike.

board -> channel, lifeline, pipes of each rank -> processes -> SETUP and TASK -> whoever follows them

An error in between ends what was started and closes what was made. If it was the fork server that died, all is done
once more, with a new one: with new channels as well, so that no rank of the first time takes what is for another.
"""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from importlib import import_module
from multiprocessing.process import current_process
from typing import Any, NamedTuple, TypeVar

from nbmp.errors import StartError
from nbmp.launching import tracker
from nbmp.launching.board import board
from nbmp.launching.channel import SETUP, TASK, plain
from nbmp.launching.connecting import connect, disconnect
from nbmp.launching.context import ProcessContext
from nbmp.launching.default_method import StartMethod
from nbmp.launching.messages import Setup
from nbmp.launching.plan import Plan
from nbmp.launching.process import RankProcess, ServerEndedError, abandon
from nbmp.launching.record import RankRecord
from nbmp.launching.shortage import explained
from nbmp.memory.segment import Segment
from nbmp.pickling.arriving import TravellingFd
from nbmp.pickling.parcel import FdOwner, Parcel

Context = TypeVar("Context", bound=ProcessContext)
Task = Callable[[int], Any] | Parcel
"""What a rank does: inherited by a fork and called as `task(rank)`, otherwise a pickled `Call`."""


def begin(
    setups: Sequence[Setup],
    task: Task,
    choice: StartMethod,
    threads: int | None,
    follow: Callable[[Sequence[RankRecord]], Context],
    processes: Sequence[RankProcess] | None = None,
) -> Context:
    """Start a rank for each setup and return what `follow(records)` makes of them.

    Parameters
    ----------
    threads
        See `Plan.threads`.
    processes
        Processes of the ranks that somebody has made already, in their order.

    Raises
    ------
    StartError
        When there are not enough descriptors, processes or threads; says the limit and what to do.
    """
    _refuse_while_imported()
    tracker.running()  # before forks
    steps = partial(_begin, setups, task, choice, threads, follow, processes)
    with explained():
        try:
            return steps()
        except ServerEndedError:  # ranks that are there have been killed, and have had no task
            try:
                return steps()
            except ServerEndedError as error:
                raise StartError(str(error)) from None


def _begin(
    setups: Sequence[Setup],
    task: Task,
    choice: StartMethod,
    threads: int | None,
    follow: Callable[[Sequence[RankRecord]], Context],
    processes: Sequence[RankProcess] | None,
) -> Context:
    with ExitStack() as undo:
        table = board(len(setups))
        records, plans = [], []
        for setup, process in zip(setups, processes or map(_process, setups), strict=True):
            record, ends = connect(setup.rank, table, setup.world_size)
            undo.callback(disconnect, record)
            undo.callback(ends.close)
            record.process = process
            records.append(record)
            inherited = None if isinstance(task, Parcel) else task
            plans.append(Plan(process, setup, ends, table, record.crash, inherited, threads))
        import_module(f"nbmp.launching.methods.{choice.method}").start(plans)
        undo.callback(abandon, [plan.process for plan in plans])
        if isinstance(task, Parcel):
            for record, setup in zip(records, setups, strict=True):
                _hand_over(record, setup, table, task)
        context = follow(records)
        undo.pop_all()
        return context


def _refuse_while_imported() -> None:
    """Raise StartError in a rank that gets its task: its ranks would import the same module, and theirs, and so on."""
    if getattr(current_process(), "_unpickles", False):
        raise StartError(
            "a module starts ranks while it is imported, and is imported here because a rank needs a function of it: "
            "put what starts ranks under `if __name__ == '__main__':` or into a function"
        )


def _process(setup: Setup) -> RankProcess:
    return RankProcess(name=setup.name, daemon=setup.daemon)


class _OfTracker(NamedTuple):
    """A descriptor that somebody else owns."""

    fd: int


def _hand_over(record: RankRecord, setup: Setup, table: Segment, parcel: Parcel) -> None:
    owners: list[FdOwner] = [table, record.crash]
    fd = tracker.running()
    if fd is not None:
        setup = setup._replace(tracker=TravellingFd(len(owners)))
        owners.append(_OfTracker(fd))
    try:
        record.channel.send(plain(setup, owners), SETUP)
        record.channel.send(parcel, TASK)
    except (BrokenPipeError, ConnectionResetError):
        pass  # it is dead already; its exit status says more
