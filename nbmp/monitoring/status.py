"""What runs at this moment: all ranks of all launches, and all workers of all pools, of this process."""

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from nbmp.launching import registry
from nbmp.monitoring.gauges import Gauge
from nbmp.monitoring.sampling import row
from nbmp.monitoring.snapshots import RankSnapshot, columns, duration, share, size

MEASURE_SECONDS = 0.2
"""How long CPU shares are measured."""


@dataclass(frozen=True)
class GroupStatus:
    """A launch or a pool."""

    name: str
    """What it is called: by its user, or `launch-3`."""
    kind: str
    """`launch` or `pool`."""
    start_method: str
    ranks: tuple[RankSnapshot, ...]
    """Of those that run; a pool's workers are numbered by their places."""


@dataclass(frozen=True)
class Status:
    """All that runs, in the order of its start; prints as a table."""

    groups: tuple[GroupStatus, ...]

    def __iter__(self) -> Iterator[GroupStatus]:
        return iter(self.groups)

    def __len__(self) -> int:
        return len(self.groups)

    def __str__(self) -> str:
        return status_table(self)

    __repr__ = __str__


def status(names: Mapping[int, str] | None = None) -> Status:
    """Return what runs now; takes a fifth of a second, for the CPU shares.

    Parameters
    ----------
    names
        What launches and pools are called, by their numbers; for those that have no name of their own.
    """
    groups = registry.running()
    alive = [[(record, Gauge()) for record in group.ranks if not record.ended] for group in groups]
    measured = [(record.pid, gauge) for rows in alive for record, gauge in rows]
    for pid, gauge in measured:
        gauge.measure_cpu(pid)
    if measured:
        time.sleep(MEASURE_SECONDS)
    for pid, gauge in measured:
        gauge.measure_cpu(pid)
        gauge.measure_memory(pid)
    return Status(
        tuple(
            GroupStatus(
                group.name or (names or {}).get(group.number) or registry.title(group),
                group.kind,
                group.start_method,
                tuple(row(record, gauge) for record, gauge in rows),
            )
            for group, rows in zip(groups, alive, strict=True)
        )
    )


def status_table(found: Status) -> str:
    """Return the status as lines of text."""
    if not found.groups:
        return "no ranks run"
    rows = [("name", "rank", "pid", "state", "time", "CPU", "memory", "last line")]
    for group in found:
        for rank in group.ranks:
            numbers = (str(rank.rank), str(rank.pid), rank.label)
            measured = (duration(rank), share(rank.cpu), size(rank.memory))
            method = f" ({group.start_method})" if group.start_method else ""  # none: a pool that is being ended
            rows.append((f"{group.name}{method}", *numbers, *measured, rank.remark[:80]))
    return columns(rows, right=(1, 2, 4, 5, 6))
