"""Many arrays, in one message and in many, until the other process has counted them, against the standard Queue."""

import gc
import os
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import nbmp
from tests.benchmarks import sides
from tests.benchmarks.table import heading, interleaved, microseconds, row, seconds

ROUNDS = 5
KB = 1 << 10


def in_one(side: sides.Side, arrays: list[Any]) -> None:
    side.requests.put(arrays)
    side.answers.get()


def each(side: sides.Side, arrays: list[Any]) -> None:
    """Put one after the other and take the answers meanwhile, so that none waits for room."""
    for array in arrays:
        side.requests.put(array)
    for _ in arrays:
        side.answers.get()


def main() -> None:
    ours, standard = sides.ours(), sides.standard()
    in_one(ours, [sides.ones(KB)])
    nbmp.trim()
    gc.collect()
    before = len(os.listdir("/proc/self/fd"))
    heading("many arrays against multiprocessing.Queue")
    cases: tuple[tuple[str, Callable[..., None], int, int], ...] = (
        ("10,000 of 1 kB in one list", in_one, 10_000, KB),
        ("10,000 of 1 kB, each by itself", each, 10_000, KB),
        ("4,000 of 40 kB, each by itself", each, 4_000, 40 * KB),
    )
    for name, measure, count, size in cases:
        arrays = [sides.ones(size) for _ in range(count)]
        mine, other = interleaved([partial(seconds, measure, side, arrays) for side in (ours, standard)], ROUNDS)
        row(name, microseconds([("nbmp", mine), ("standard", other)]), mine / other, 1.0, at_most=True)
        del arrays
    nbmp.trim()
    gc.collect()
    left = len(os.listdir("/proc/self/fd")) - before
    row("descriptors left", "", left, 0, at_most=True)
    ours.end()
    standard.end()


if __name__ == "__main__":
    main()
