"""Snapshots of a launch: one row per rank, as plain data, and how people read its numbers."""

import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nbmp.launching.bars.progress import LARGE
from nbmp.launching.bars.progress import clock as clock

if TYPE_CHECKING:
    from nbmp.launching.bars.progress import Progress
    from nbmp.launching.where.watching import Wait
    from nbmp.reports import RankFailure

ALIVE = ("starting", "running")
FAILED = ("raised", "exited", "killed")
GROUPS = (*ALIVE, "waiting", "done", "failed", "stopped")
"""What ranks are counted by, in the order shown."""

DASH = "\N{EN DASH}"
_WARNING = re.compile(r":\d+: (\w*Warning: .*)")
"""The first line of a warning; a line of source follows it."""


@dataclass(frozen=True)
class RankSnapshot:
    """One rank at one moment."""

    rank: int
    pid: int | None
    state: str
    """`starting`, `running`, `done`, `raised`, `exited`, `killed` or `stopped`."""
    seconds: float
    cpu: float | None
    """Per cent of one core during the last second; None when ended or not measured yet."""
    memory: int | None
    """Proportional set size in bytes (memory shared by k processes counts 1/k); None as for `cpu`."""
    last_line: str
    failure: str
    """One line, such as `ValueError: shapes do not match` or `signal SIGKILL`; empty without a failure."""
    progress: "Progress | None" = None
    """Of the progress bar that it shows, if it shows one."""
    shared: int | None = None
    """Bytes of nbmp's shared memory that it has mapped; None as for `cpu`."""
    gpu_memory: int | None = None
    """Bytes of GPU memory; None where that cannot be had."""
    wait: "Wait | None" = None
    """What it waits for, since a second at least."""
    lines: int = 0
    """How many lines it has written."""
    tail: tuple[str, ...] = ()
    """The last ones of them."""
    stopping: bool = False
    """Whether it was asked to end, and still runs."""
    error: "RankFailure | None" = None
    """How it failed."""
    unread: bool = False
    """Whether its function is over and it waits until what it has put into queues is read."""

    @property
    def group(self) -> str:
        """Return one of `GROUPS`."""
        if self.state in FAILED:
            return "failed"
        return "waiting" if self.wait is not None else self.state

    @property
    def label(self) -> str:
        """Return the state in a word or two: `running`, `waiting 3 s`, `ValueError`, `killed SIGKILL`."""
        if self.stopping:
            return "stopping"
        if self.wait is not None:
            return f"waiting {seconds_text(self.wait.seconds)}"
        if self.state == "raised":
            return self.failure.partition(":")[0].rpartition(".")[2] or "raised"  # without the module
        if self.state == "killed":
            return f"killed {self.failure.removeprefix('signal ')}".strip()
        return self.failure or "exited" if self.state == "exited" else self.state

    @property
    def remark(self) -> str:
        """Return what there is to say about it: its error message, what it waits for, or the last line it printed."""
        if self.unread:
            return "waits for its queue to be read"
        if self.wait is not None:
            return f"{self.wait.frame.place()}: waits for {self.wait.waits_for}"
        if self.state == "raised":
            return self.failure.partition(": ")[2]
        return self._warning or self.last_line

    @property
    def _warning(self) -> str:
        """Return a warning whose line of source is the last thing that was written."""
        if len(self.tail) < 2 or not self.tail[-1].startswith("  "):
            return ""
        found = _WARNING.search(self.tail[-2])
        return found[1] if found else ""


@dataclass(frozen=True)
class LaunchSnapshot:
    """All ranks of one launch at one moment."""

    ranks: tuple[RankSnapshot, ...]
    start_method: str
    start_method_reason: str
    seconds: float
    kind: str = "rank"
    """What they are called: `rank`, or `worker` of a pool."""

    @property
    def counts(self) -> dict[str, int]:
        """Return how many ranks are in each group that has any, in the order of `GROUPS`."""
        found = Counter(rank.group for rank in self.ranks)
        return {group: found[group] for group in GROUPS if found[group]}


def launch_clock(snapshot: LaunchSnapshot) -> str:
    """Return a launch's time: `00:12`. It is not below that of a rank, whose tenths are rounded."""
    return clock(round(snapshot.seconds, 1))


def columns(rows: Sequence[tuple[str, ...]], right: Collection[int]) -> str:
    """Return the rows as lines of text, columns below each other; those in `right` end at the same place."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = (
        "  ".join(
            cell.rjust(width) if number in right else cell.ljust(width)
            for number, (cell, width) in enumerate(zip(cells, widths, strict=True))
        )
        for cells in rows
    )
    return "\n".join(line.rstrip() for line in lines)


def ranks_text(snapshot: LaunchSnapshot) -> str:
    """Return `1 rank`, `4 ranks`, `2 workers`."""
    return f"{len(snapshot.ranks)} {snapshot.kind}{'s' if len(snapshot.ranks) != 1 else ''}"


def duration(rank: RankSnapshot) -> str:
    """Return a rank's time: whole seconds while it runs, tenths when it has ended."""
    if rank.seconds < 100 and rank.state not in ALIVE:
        return f"{rank.seconds:.1f} s"
    return seconds_text(rank.seconds)


def seconds_text(seconds: float) -> str:
    """Return `12 s`, from 100 s on `01:40`."""
    return clock(seconds) if seconds >= 100 else f"{int(seconds)} s"


def size(count: int | None) -> str:
    """Return a number of bytes as people read it: `4 kB`, `41 MB`, `1.2 GB`."""
    if count is None:
        return DASH
    if count < 999_500:
        return f"{max(1, round(count / 1e3)) if count else 0} kB"
    megabytes = count / 1e6
    return f"{megabytes / 1e3:.1f} GB" if megabytes >= 999.5 else f"{megabytes:.0f} MB"


def steps(rank: RankSnapshot) -> str:
    """Return how far a rank is, `34/100`; empty without a progress bar."""
    found = rank.progress
    if found is None:
        return ""
    return _number(found.n) + (f"/{_number(found.total)}" if found.total else "")


def _number(value: float) -> str:
    return f"{value:,.0f}" if float(value).is_integer() and abs(value) < LARGE else f"{value:.4g}"


def share(cpu: float | None) -> str:
    """Return per cent of a core: `98 %`."""
    return DASH if cpu is None else f"{cpu:.0f} %"
