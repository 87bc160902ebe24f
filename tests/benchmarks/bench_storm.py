"""Storms of SIGKILL, 60 seconds each: over a queue, a bounded one, a JoinableQueue and a pool. Prints what they did."""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import nbmp
from tests import storms

WORKERS = 8


def shared_memory() -> int:
    """Return the machine's shared memory in kB: that of all processes."""
    with open("/proc/meminfo") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("Shmem:"))


def main() -> None:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 60.0
    queues: dict[str, Callable[[], Any]] = {
        "Queue": nbmp.Queue,
        "bounded": lambda: nbmp.Queue(2 * storms.TOKENS),
        "Joinable": nbmp.JoinableQueue,
    }
    for name, make in queues.items():
        descriptors, memory = len(os.listdir("/proc/self/fd")), shared_memory()
        report = storms.Storm(make(), WORKERS).run(seconds)
        nbmp.trim()
        print(f"  {name:9s} {report}", flush=True)
        now = len(os.listdir("/proc/self/fd"))
        print(f"            descriptors {descriptors} -> {now}, Shmem of the machine {memory} -> {shared_memory()} kB")
    print(f"  Pool      {storms.pool_storm(seconds)}")


if __name__ == "__main__":
    main()
