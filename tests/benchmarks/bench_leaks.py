"""What many launches and many messages leave behind in the process that made them: nothing, and how much memory.

Memory is what belongs to this process alone (`Private_*` in `/proc/self/smaps_rollup`), after a garbage collection and
`nbmp.trim()`; each kind of work warms up with a quarter of its number, which does not count. The interpreter takes
memory from the system in pieces of 1 MB, so a heap near the end of one shows as a growth of that size, once; what would
grow with every launch or message shows in the number of its blocks.
"""

import gc
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import numpy as np

import nbmp
from tests import leaks
from tests.benchmarks.bare import nothing

LAUNCHES, MESSAGES = 2_000, 100_000
METHODS = {"fork": 0.6, "forkserver": 0.35, "spawn": 0.05}
"""The share of each in the launches; `spawn` starts an interpreter for each rank."""
KINDS = ("a dict", "1 kB", "100 kB", "shared, 8 bytes", "shared, 100 kB")


def private_bytes() -> int:
    """Return how much memory belongs to this process alone."""
    with open("/proc/self/smaps_rollup") as file:
        return sum(int(line.split()[1]) * 1024 for line in file if line.startswith("Private_"))


def settled() -> int:
    """Return the memory once all that is kept for reuse has been given back."""
    nbmp.trim()
    gc.collect()
    deadline = time.monotonic() + 3
    while any(thread.name == "nbmp-janitor" for thread in threading.enumerate()) and time.monotonic() < deadline:
        time.sleep(0.05)
    return private_bytes()


def echo(rank: int, requests: Any, answers: Any) -> None:
    """Send everything back until None comes."""
    while (received := requests.get()) is not None:
        answers.put(received)


def launches(method: str, count: int) -> None:
    for _ in range(count):
        nbmp.launch(nothing, nprocs=1, start_method=method)


def messages(kind: str, requests: Any, answers: Any, count: int) -> None:
    """Send there and back, and make what is sent anew each time."""
    shared = nbmp.ones(1)
    for index in range(count):
        if kind == "a dict":
            requests.put({"step": index, "name": "run"})
        elif kind == "shared, 8 bytes":
            requests.put(shared)
        elif kind == "shared, 100 kB":
            requests.put(nbmp.ones(12_500))
        else:
            requests.put(np.ones(128 if kind == "1 kB" else 12_500))
        answers.get(timeout=60)


def measure(name: str, work: Callable[[int], None], count: int) -> tuple[int, int]:
    """Do the work, print what it left and return by how much the memory has grown, and the number of blocks."""
    work(max(1, count // 4))
    memory, before, blocks = settled(), leaks.Holdings.now(), sys.getallocatedblocks()
    begun = time.monotonic()
    work(count)
    seconds, growth = time.monotonic() - begun, settled() - memory
    more = sys.getallocatedblocks() - blocks
    left = leaks.leftovers(before, leaks.KINDS)
    figures = f"{seconds:6.1f} s   memory {growth / 1024:+6.0f} kB, blocks {more:+5d}"
    print(f"  {count:7d} x {name:24s} {figures}   left: {left or 'nothing'}", flush=True)
    return growth, more


def main() -> None:
    times = [int(argument) for argument in sys.argv[1:]] or [LAUNCHES, MESSAGES]
    grown = []
    for method, share in METHODS.items():
        grown.append(measure(f"launch, {method}", partial(launches, method), max(1, int(times[0] * share))))
    requests, answers = nbmp.Queue(), nbmp.Queue()
    context = nbmp.start_processes(echo, (requests, answers), join=False, start_method="fork")
    for kind in KINDS:
        grown.append(measure(f"message, {kind}", partial(messages, kind, requests, answers), times[1] // len(KINDS)))
    requests.put(None)
    assert context is not None
    assert context.join()
    print(f"  in all: memory {sum(m for m, _ in grown) / 1024:+.0f} kB, blocks {sum(b for _, b in grown):+d}")


if __name__ == "__main__":
    main()
