"""Snapshots of a launch: one row per rank, taken from a `ProcessContext` and from the operating system."""

import time
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import psutil

if TYPE_CHECKING:
    from nbmp.launching.context import ProcessContext
    from nbmp.launching.record import RankRecord

ALIVE = ("starting", "running")
FAILED = ("raised", "exited", "killed")
GROUPS = (*ALIVE, "done", "failed", "stopped")
"""What ranks are counted by, in the order shown."""

DASH = "\N{EN DASH}"

FIRST = 0.3
CPU_EVERY = 1.0
MEMORY_EVERY = 1.0
MEMORY_SHARE = 0.02
"""The kernel walks a process' page tables for its PSS, holding the lock that its page faults need. A sampler
spends at most this share of the time on it, so that ranks with many GB are asked seldom."""


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

    @property
    def group(self) -> str:
        """Return one of `GROUPS`."""
        return "failed" if self.state in FAILED else self.state

    @property
    def label(self) -> str:
        """Return the state in a word or two: `running`, `ValueError`, `killed SIGKILL`, `exit code 3`."""
        if self.state == "raised":
            return self.failure.partition(":")[0] or "raised"
        if self.state == "killed":
            return f"killed {self.failure.removeprefix('signal ')}".strip()
        return self.failure or "exited" if self.state == "exited" else self.state

    @property
    def remark(self) -> str:
        """Return what there is to say about it: its error message, else the last line it printed."""
        return self.failure.partition(": ")[2] if self.state == "raised" else self.last_line


@dataclass(frozen=True)
class LaunchSnapshot:
    """All ranks of one launch at one moment."""

    ranks: tuple[RankSnapshot, ...]
    start_method: str
    start_method_reason: str
    seconds: float

    @property
    def counts(self) -> dict[str, int]:
        """Return how many ranks are in each group that has any, in the order of `GROUPS`."""
        found = Counter(rank.group for rank in self.ranks)
        return {group: found[group] for group in GROUPS if found[group]}


class Sampler:
    """Takes snapshots of one launch. Use it from one thread."""

    def __init__(self, context: "ProcessContext"):
        self._context = context
        self._gauges = [Gauge() for _ in context.ranks]
        # Nothing at once: that would cost a launch of four ranks some 20 ms.
        self._next_cpu = time.monotonic() + FIRST
        self._next_memory = time.monotonic() + FIRST

    def snapshot(self) -> LaunchSnapshot:
        """Return how things are now. CPU and memory are measured about once a second, whatever the rate of
        calls."""
        self._measure()
        ranks = tuple(map(row, self._context.ranks, self._gauges))
        return LaunchSnapshot(
            ranks,
            self._context.start_method,
            self._context.start_method_reason,
            max((rank.seconds for rank in ranks), default=0.0),
        )

    def _measure(self) -> None:
        now = time.monotonic()
        rows = zip(self._context.ranks, self._gauges, strict=True)
        alive = [(rank.pid, gauge) for rank, gauge in rows if rank.state in ALIVE]
        if now >= self._next_cpu:
            self._next_cpu = now + CPU_EVERY
            for pid, gauge in alive:
                gauge.measure_cpu(pid)
        if now >= self._next_memory:
            for pid, gauge in alive:
                gauge.measure_memory(pid)
            took = time.monotonic() - now
            self._next_memory = now + max(MEMORY_EVERY, took / MEMORY_SHARE)


def row(rank: "RankRecord", gauge: "Gauge") -> RankSnapshot:
    """Return a rank at this moment, with what the gauge has measured."""
    state, failure = rank.state, rank.failure
    is_alive = state in ALIVE
    return RankSnapshot(
        rank.shown_as,
        rank.pid,
        state,
        rank.seconds,
        gauge.cpu if is_alive else None,
        gauge.memory if is_alive else None,
        rank.last_line,
        failure.summary if failure is not None else "",
    )


class Gauge:
    """CPU and memory of one process. Values stay None where they cannot be had."""

    def __init__(self) -> None:
        self.cpu: float | None = None
        self.memory: int | None = None
        self._process: psutil.Process | None = None

    def measure_cpu(self, pid: int | None) -> None:
        try:
            if self._process is None:
                self._process = psutil.Process(pid) if pid else None
                if self._process is not None:
                    self._process.cpu_percent()  # the first call only starts the clock
            else:
                self.cpu = self._process.cpu_percent()
        except psutil.Error:
            self.cpu = None

    def measure_memory(self, pid: int | None) -> None:
        try:
            process = self._process or (psutil.Process(pid) if pid else None)
            if process is not None:
                full = process.memory_full_info()
                self.memory = getattr(full, "pss", full.rss)
        except (psutil.Error, OSError):
            self.memory = None


def text_table(snapshot: LaunchSnapshot) -> str:
    """Return the snapshot as lines of text, for terminals and saved notebooks."""
    head = ("rank", "state", "time", "CPU", "memory", "last line")
    rows = [head, *(_cells(rank) for rank in snapshot.ranks)]
    return f"{title(snapshot)}\n{columns(rows, right=(0, 2, 3, 4))}"


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


def title(snapshot: LaunchSnapshot) -> str:
    """Return the launch in one line: `4 ranks (fork) 00:12: 3 running, 1 failed`."""
    counts = ", ".join(f"{count} {group}" for group, count in snapshot.counts.items())
    return f"{ranks_text(snapshot)} ({snapshot.start_method}) {clock(snapshot.seconds)}: {counts}"


def ranks_text(snapshot: LaunchSnapshot) -> str:
    """Return `1 rank`, `4 ranks`."""
    return f"{len(snapshot.ranks)} rank{'s' if len(snapshot.ranks) != 1 else ''}"


def clock(seconds: float) -> str:
    """Return minutes and seconds, `00:12`, with hours where there are any."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes:02}:{rest:02}"


def duration(rank: RankSnapshot) -> str:
    """Return a rank's time: whole seconds while it runs, tenths when it has ended."""
    if rank.seconds >= 100:
        return clock(rank.seconds)
    return f"{int(rank.seconds)} s" if rank.state in ALIVE else f"{rank.seconds:.1f} s"


def size(count: int | None) -> str:
    """Return a number of bytes as people read it: `4 kB`, `41 MB`, `1.2 GB`."""
    if count is None:
        return DASH
    if 0 < count < 999_500:
        return f"{max(1, round(count / 1e3))} kB"
    megabytes = count / 1e6
    return f"{megabytes / 1e3:.1f} GB" if megabytes >= 999.5 else f"{megabytes:.0f} MB"


def share(cpu: float | None) -> str:
    """Return per cent of a core: `98 %`."""
    return DASH if cpu is None else f"{cpu:.0f} %"


def _cells(rank: RankSnapshot) -> tuple[str, ...]:
    return str(rank.rank), rank.label, duration(rank), share(rank.cpu), size(rank.memory), rank.remark[:80]
