"""The timeout of a launch: joining in time, and what is said of ranks that are late."""

from collections.abc import Sequence

from nbmp.errors import LaunchTimeoutError
from nbmp.launching.context import ProcessContext
from nbmp.launching.outcomes import names_of, unread_line
from nbmp.launching.record import RankRecord
from nbmp.launching.stopping import INTERRUPT_SECONDS
from nbmp.reports import ranks_called

TOLD = 8
"""Ranks of which a timeout says where they were."""
STACK_SECONDS = 1.0
"""How long they have to answer."""


def join_in_time(context: ProcessContext, timeout: float | None, grace_period: float | None) -> None:
    """As `ProcessContext.join`; stops them and raises LaunchTimeoutError when some still run after `timeout`."""
    if not context.join(timeout, grace_period) and timeout is not None:
        raise stop_late(context, timeout, grace_period)


def stop_late(context: ProcessContext, timeout: float, grace_period: float | None) -> LaunchTimeoutError:
    """End ranks whose time is up, and return the error that says so."""
    late = [record for record in context.ranks if not record.ended]
    places = _where(context, late)
    context.stop(INTERRUPT_SECONDS if grace_period is None else grace_period, reason=f"its timeout of {timeout:g} s")
    return LaunchTimeoutError(
        f"{names_of(late, 'rank')} of {context.world_size} still ran after {timeout:g} s and "
        f"{'were' if len(late) > 1 else 'was'} stopped; "
        f"{unread_line(late) or 'give them a longer timeout, or none'}{places}"
    )


def _where(context: ProcessContext, late: Sequence[RankRecord]) -> str:
    """Return a line for each place where these ranks are, the first `TOLD` of them; asks for a second."""
    places: dict[str, list[int]] = {}
    for stack in context.stacks([record.rank for record in late[:TOLD]], timeout=STACK_SECONDS):
        places.setdefault(stack.place(), []).append(stack.rank)
    return "".join(f"\n  {ranks_called(ranks)}: {place}" for place, ranks in places.items())
