"""Memory: one large argument for four spawned ranks, and how soon what was kept for reuse is given back.

Sampled from /proc while the ranks run: a page of theirs that several processes map counts once in all (PSS), a segment
whole, whoever maps it.
"""

import sys
import threading
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import numpy as np

import nbmp
from tests.benchmarks.table import heading, row

RANKS = 4
ARGUMENT = 1 << 30
LOOK_SECONDS = 0.02


def read(rank: int, array: Any) -> int:
    """Touch every page, and stay until it has been seen."""
    total = int(array[::4096].sum())
    time.sleep(1)
    return total


def take(_: int, queue: Any, answers: Any) -> None:
    while (array := queue.get()) is not None:
        answers.put(int(array[-1]))
        del array


def own_memory(pid: int | str) -> int:
    """Return the bytes that a process takes beside shared memory, 0 when it is gone.

    Its part of a segment is left out: it changes while one process after the other is looked at.
    """
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith(("Pss_Anon:", "Pss_File:")))


def shared_memory() -> int:
    """Return the bytes that segments of this process and of its ranks take, mapped or not."""
    return sum(segment.size if segment.taken is None else segment.taken for segment in nbmp.memory_usage().segments)


class Peak(threading.Thread):
    """Follows the memory of ranks, of segments, and of this process beyond what it was."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.bytes = 0
        self.pids: list[int] = []
        self.over = threading.Event()
        self._before = own_memory("self")

    def run(self) -> None:
        while not self.over.wait(LOOK_SECONDS):
            mine = own_memory("self") - self._before
            self.bytes = max(self.bytes, sum(map(own_memory, self.pids)) + mine + shared_memory())


def argument() -> None:
    heading(f"an argument of 1 GB for {RANKS} spawned ranks")
    array = np.ones(ARGUMENT, "u1")
    peak = Peak()
    peak.start()
    context = nbmp.start_processes(read, (array,), RANKS, join=False, start_method="spawn")
    assert context is not None
    peak.pids = [pid for pid in context.pids() if pid is not None]
    context.join()
    peak.over.set()
    peak.join()
    row(
        "peak of all together",
        "the array of the launching process not counted",
        peak.bytes / 1e9,
        1.25,
        " GB",
        at_most=True,
    )


def given_back() -> None:
    heading("memory that is kept for reuse, after the last array")
    queue, answers = nbmp.Queue(), nbmp.Queue()
    before = shared_memory()
    context = nbmp.start_processes(take, (queue, answers), join=False, start_method="fork")
    for _ in range(10):
        queue.put(np.ones(64 << 20, "u1"))
        queue.put(nbmp.ones(64 << 20, "u1"))
    for _ in range(20):
        answers.get()
    kept = shared_memory() - before
    begun = time.monotonic()
    while shared_memory() - before > 1 << 20 and time.monotonic() - begun < 60:
        time.sleep(0.05)
    row("back within", f"kept at first: {kept / 1e6:.0f} MB", time.monotonic() - begun, 10, " s", at_most=True)
    queue.put(None)
    assert context is not None
    context.join()


def main() -> None:
    argument()
    given_back()


if __name__ == "__main__":
    main()
