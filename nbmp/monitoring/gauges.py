"""CPU and memory of ranks, as the operating system tells them."""

import os
import time
from collections.abc import Sequence

import psutil

from nbmp.monitoring.gpus import memory_by_process
from nbmp.platforms.mapped import shared_bytes

FIRST = 0.3
CPU_EVERY = 1.0
MEMORY_EVERY = 1.0
MEMORY_SHARE = 0.006
"""The kernel walks a process' page tables for its PSS, holding the lock that its page faults need: 1.4 ms for 100 MB. A
sampler spends at most this share of the time on it, so that many ranks, or ranks with many GB, are asked seldom."""


class Gauge:
    """One process. Values stay None where they cannot be had."""

    def __init__(self) -> None:
        self.cpu: float | None = None
        self.memory: int | None = None
        self.shared: int | None = None
        self.gpu_memory: int | None = None
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
                self.memory = _proportional(process)
        except (psutil.Error, OSError):
            self.memory = None

    def measure_shared(self, pid: int | None) -> None:
        try:
            self.shared = shared_bytes(pid) if pid else None
        except (OSError, ValueError):
            self.shared = None


class Rounds:
    """Measures the processes of a launch, each kind as often as it is worth."""

    def __init__(self) -> None:
        # Nothing at once: that would cost a launch of four ranks some 20 ms.
        self._next_cpu = self._next_memory = time.monotonic() + FIRST

    def measure(self, alive: Sequence[tuple[int | None, Gauge]]) -> None:
        """Bring the gauges up to date that are due."""
        now = time.monotonic()
        if now >= self._next_cpu:
            self._next_cpu = now + CPU_EVERY
            for pid, gauge in alive:
                gauge.measure_cpu(pid)
        if now >= self._next_memory:
            by_process = memory_by_process()
            for pid, gauge in alive:
                gauge.measure_memory(pid)
                gauge.measure_shared(pid)
                gauge.gpu_memory = by_process.get(pid or 0)
            took = time.monotonic() - now
            self._next_memory = now + max(MEMORY_EVERY, took / MEMORY_SHARE)


def _proportional(process: psutil.Process) -> int:
    """Return a process' PSS: memory shared by k processes counts 1/k."""
    try:
        descriptor = os.open(f"/proc/{process.pid}/smaps_rollup", os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:  # an old kernel, or another system
        full = process.memory_full_info()
        return int(getattr(full, "pss", full.rss))
    try:
        text = os.read(descriptor, 4096)
    finally:
        os.close(descriptor)
    return int(text.partition(b"\nPss:")[2].split(None, 1)[0]) * 1024
