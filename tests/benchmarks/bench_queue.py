"""A queue's round trip, from `put` until the other process has answered, against multiprocessing.Queue in one run.

The array is private and made before; in the steady state each message takes the segment of one that was dropped.
Medians over interleaved rounds.
"""

import multiprocessing
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import numpy as np

import nbmp

ROUNDS = 4


def answer(requests: Any, answers: Any) -> None:
    """Answer each object with 1, until None comes."""
    while requests.get() is not None:
        answers.put(1)


def answer_in_rank(_: int, requests: Any, answers: Any) -> None:
    """The same, as a rank."""
    answer(requests, answers)


def round_trip(requests: Any, answers: Any, obj: Any, count: int) -> float:
    """Return the median time of one, in microseconds."""
    times = []
    for _ in range(count):
        begun = time.perf_counter()
        requests.put(obj)
        answers.get()
        times.append(time.perf_counter() - begun)
    return statistics.median(times) * 1e6


def cases() -> Iterator[tuple[str, Any, int]]:
    yield "an int", 5, 400
    yield "a short dict", {"step": 1, "loss": 0.25, "name": "run"}, 400
    for size in (1 << 10, 64 << 10, 1 << 20, 16 << 20, 256 << 20):
        name = f"{size >> 20} MB" if size >= 1 << 20 else f"{size >> 10} kB"
        yield name, np.ones(size, "u1"), max(4, min(200, (64 << 20) // size))


def peer(module: Any) -> tuple[Any, Any, Callable[[], None]]:
    """Return two queues of a module like multiprocessing, answered by a forked process, and how to end it."""
    context = module.get_context("fork")
    requests, answers = context.Queue(), context.Queue()
    process = context.Process(target=answer, args=(requests, answers))
    process.start()
    return requests, answers, lambda: (requests.put(None), process.join())[1]


def main() -> None:
    requests, answers = nbmp.Queue(), nbmp.Queue()
    ours = nbmp.start_processes(answer_in_rank, (requests, answers), join=False, start_method="fork")
    theirs, their_answers, end = peer(multiprocessing)
    print(f"round trip in microseconds, Python {sys.version.split()[0]}, NumPy {np.__version__}")
    for name, obj, count in cases():
        pairs = [
            (round_trip(requests, answers, obj, count), round_trip(theirs, their_answers, obj, max(3, count // 4)))
            for _ in range(ROUNDS)
        ]
        mine, other = (statistics.median(column) for column in zip(*pairs, strict=True))
        print(f"  {name:14s} nbmp {mine:10.0f}   multiprocessing {other:10.0f}   ratio {mine / other:5.2f}")
    for size in (1 << 10, 1 << 20, 64 << 20):
        shared = nbmp.zeros(size, "u1")
        print(f"  shared, {size >> 10:6d} kB  nbmp {round_trip(requests, answers, shared, 200):10.0f}")
    source, target = np.ones(256 << 20, "u1"), np.ones(256 << 20, "u1")
    copies = []
    for _ in range(5):
        begun = time.perf_counter()
        np.copyto(target, source)
        copies.append(time.perf_counter() - begun)
    print(f"  a warm np.copyto of 256 MB: {statistics.median(copies) * 1e6:10.0f}")
    requests.put(None)
    end()
    assert ours is not None
    ours.join()


if __name__ == "__main__":
    main()
