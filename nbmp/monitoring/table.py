"""A snapshot of a launch as a table of text, for terminals, logs and saved notebooks."""

from collections.abc import Callable
from typing import NamedTuple

from nbmp.monitoring.snapshots import (
    ALIVE,
    LaunchSnapshot,
    RankSnapshot,
    columns,
    duration,
    launch_clock,
    ranks_text,
    share,
    size,
    steps,
)


class Column(NamedTuple):
    """One column, shown when `is_there` is true of any rank; the first has no head, which is what they are called."""

    head: str
    cell: Callable[[RankSnapshot], str]
    is_right: bool = True
    is_there: Callable[[RankSnapshot], object] = lambda _: True


COLUMNS = (
    Column("", lambda rank: str(rank.rank)),
    Column("state", lambda rank: rank.label, is_right=False),
    Column("progress", lambda rank: steps(rank), is_there=lambda rank: rank.progress is not None),
    Column("time", duration),
    Column("CPU", lambda rank: share(rank.cpu), is_there=lambda rank: rank.state in ALIVE),
    Column("memory", lambda rank: size(rank.memory), is_there=lambda rank: rank.state in ALIVE),
    Column("shared", lambda rank: size(rank.shared), is_there=lambda rank: rank.shared),
    Column("GPU", lambda rank: size(rank.gpu_memory), is_there=lambda rank: rank.gpu_memory),
    Column("last line", lambda rank: rank.remark[:80], is_right=False),
)


def text_table(snapshot: LaunchSnapshot) -> str:
    """Return the snapshot as lines of text."""
    shown = [column for column in COLUMNS if any(map(column.is_there, snapshot.ranks))]
    rows = [tuple(column.cell(rank) for column in shown) for rank in snapshot.ranks]
    right = {number for number, column in enumerate(shown) if column.is_right}
    heads = tuple(column.head or snapshot.kind for column in shown)
    return f"{title(snapshot)}\n{columns([heads, *rows], right)}"


def title(snapshot: LaunchSnapshot) -> str:
    """Return the launch in one line: `4 ranks (fork) 00:12: 3 running, 1 failed`."""
    counts = ", ".join(f"{count} {group}" for group, count in snapshot.counts.items())
    return f"{ranks_text(snapshot)} ({snapshot.start_method}) {launch_clock(snapshot)}: {counts}"
