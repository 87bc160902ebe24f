"""A queue's round trip, from `put` until the other process has answered, against torch and the standard library.

A private array is made just before, outside the time; in the steady state each message takes the segment of one that
was dropped. One run, interleaved rounds, medians.
"""

import sys
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import numpy as np

from tests.benchmarks import sides
from tests.benchmarks.record import keep
from tests.benchmarks.table import heading, interleaved, microseconds, row, seconds

ROUNDS = 5
KB, MB, GB = 1 << 10, 1 << 20, 1 << 30
SMALL_SIZES = (KB, 16 * KB, 64 * KB)
LARGE_SIZES = (MB, 16 * MB, 256 * MB)
SHARED_SIZES = (KB, MB, 64 * MB, GB)
PRIVATE = "Private arrays through a queue and an answer back; copy: np.copyto from warm into warm memory"
SHARED = "Arrays (torch: tensors) that are shared already, through a queue and an answer back"
FASTER = 6
"""Than torch, for large private arrays."""
OF_A_COPY = 0.7
"""Of the speed of a copy from warm memory into warm memory."""


def named(size: int) -> str:
    unit, name = next((unit, name) for unit, name in ((GB, "GB"), (MB, "MB"), (KB, "kB")) if size >= unit)
    return f"{size // unit} {name}"


def small_objects(ours: sides.Side, standard: sides.Side) -> None:
    heading("small objects, round trip against multiprocessing.Queue")
    cases = (("an int", 5, 0.8), ("a short dict", {"step": 1, "loss": 0.25, "name": "run"}, 0.8))
    arrays = [(f"private array of {named(size)}", sides.ones(size), 1.0) for size in SMALL_SIZES]
    for name, obj, target in (*cases, *arrays):
        mine, other = interleaved(
            [partial(side.round_trip, partial(same, obj), 200) for side in (ours, standard)], ROUNDS
        )
        keep("Small objects through a queue and an answer back", name, nbmp=mine, multiprocessing=other)
        row(name, microseconds([("nbmp", mine), ("standard", other)]), mine / other, target, at_most=True)


def large_private(ours: sides.Side, torch: sides.Side | None) -> None:
    heading("private arrays, round trip against torch's queue and a warm np.copyto")
    for size in LARGE_SIZES:
        count = max(3, min(100, 32 * MB // size))
        measures = [
            partial(ours.round_trip, partial(ours.private, size), count),
            partial(median_copy, ours.private(size), ours.private(size), count),
        ]
        if torch is not None:
            measures.append(partial(torch.round_trip, partial(torch.private, size), count))
        mine, copy, *rest = interleaved(measures, ROUNDS)
        keep(PRIVATE, named(size), nbmp=mine, copy=copy, **dict(zip(["torch"], rest, strict=False)))
        for other in rest:
            row(f"{named(size)}, against torch", microseconds([("nbmp", mine), ("torch", other)]), other / mine, FASTER)
        if size > MB:
            row(f"{named(size)}, of a copy", microseconds([("nbmp", mine), ("copy", copy)]), copy / mine, OF_A_COPY)


def same(obj: Any) -> Any:
    return obj


def median_copy(target: Any, source: Any, count: int) -> float:
    return float(np.median([seconds(np.copyto, target, source) for _ in range(count)]))


def shared(ours: sides.Side, torch: sides.Side | None) -> None:
    heading("arrays that are shared already, round trip against a shared tensor")
    times = []
    for size in SHARED_SIZES:
        pairs = [(side, side.shared(size)) for side in (ours, torch) if side is not None]
        measures = [partial(side.round_trip, partial(same, obj), 100) for side, obj in pairs]
        mine, *rest = interleaved(measures, ROUNDS)
        times.append(mine)
        keep(SHARED, named(size), nbmp=mine, **dict(zip(["torch"], rest, strict=False)))
        for other in rest:
            figures = microseconds([("nbmp", mine), ("torch", other)])
            row(f"shared array of {named(size)}", figures, mine / other, 1 / 3, at_most=True)
    figures = microseconds([("fastest", min(times)), ("slowest", max(times))])
    row("flat from 1 kB to 1 GB", figures, max(times) / min(times), 1.5, at_most=True)


def main() -> None:
    # forked before torch has threads
    ours, standard = sides.ours(), sides.standard()
    torch = sides.torch()
    small_objects(ours, standard)
    if torch is None:
        print(sides.TORCH_MISSING)
    large_private(ours, torch)
    shared(ours, torch)
    for side in filter(None, (ours, standard, torch)):
        side.end()


if __name__ == "__main__":
    main()
