"""A pool of two beside the standard library's: large arrays, and tasks that do next to nothing."""

import concurrent.futures
import multiprocessing
import sys
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import numpy as np

import nbmp
from tests.benchmarks.table import heading, interleaved, microseconds, row, seconds

ROUNDS = 5
PROCESSES = 2
FASTER = 4
ARRAYS, ARRAY_BYTES = 64, 4 << 20


def nothing(item: object = None) -> None:
    """Do nothing."""


def doubled(array: Any) -> Any:
    return array * 2


def apply_many(pool: Any) -> None:
    for _ in range(200):
        pool.apply(abs, (1,))


def apply_async_many(pool: Any) -> None:
    for result in [pool.apply_async(abs, (1,)) for _ in range(500)]:
        result.get()


def map_numbers(pool: Any) -> None:
    pool.map(abs, range(10_000))


def map_singly(pool: Any) -> None:
    pool.map(abs, range(500), chunksize=1)


def imap_numbers(pool: Any) -> None:
    for _ in pool.imap(abs, range(500)):
        pass


def submit_many(executor: Any) -> None:
    for future in [executor.submit(abs, 1) for _ in range(500)]:
        future.result()


def map_arrays(pool: Any, arrays: list[Any]) -> None:
    results = pool.map(doubled, arrays)
    assert len(results) == len(arrays)
    assert results[-1][-1] == 2


TINY = (
    ("map(abs, range(10000))", map_numbers, 1.0),
    ("500 tasks, map chunksize=1", map_singly, 1.0),
    ("500 tasks, imap", imap_numbers, 1.0),
    ("500 tasks, apply_async", apply_async_many, 1.0),
    ("200 tasks, apply", apply_many, 1.0),
)


def main() -> None:
    standard = multiprocessing.get_context("fork").Pool(PROCESSES)
    futures = concurrent.futures.ProcessPoolExecutor(PROCESSES, multiprocessing.get_context("fork"))
    futures.submit(nothing).result()
    with nbmp.Pool(PROCESSES) as ours, nbmp.ProcessPoolExecutor(PROCESSES) as executor, standard, futures:
        heading("tasks that do next to nothing, against multiprocessing.Pool and ProcessPoolExecutor")
        for name, measure, target in TINY:
            mine, other = interleaved([partial(seconds, measure, pool) for pool in (ours, standard)], ROUNDS)
            row(name, microseconds([("nbmp", mine), ("standard", other)]), mine / other, target, at_most=True)
        mine, other = interleaved([partial(seconds, submit_many, pool) for pool in (executor, futures)], ROUNDS)
        row("500 tasks, submit", microseconds([("nbmp", mine), ("standard", other)]), mine / other, 1.0, at_most=True)
        heading(f"map of {ARRAYS} arrays of {ARRAY_BYTES >> 20} MB that returns as many, against multiprocessing.Pool")
        arrays = [np.ones(ARRAY_BYTES, "u1") for _ in range(ARRAYS)]
        mine, other = interleaved([partial(seconds, map_arrays, pool, arrays) for pool in (ours, standard)], 3)
        row("map", microseconds([("nbmp", mine), ("standard", other)]), other / mine, FASTER)


if __name__ == "__main__":
    main()
