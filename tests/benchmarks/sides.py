"""Who is measured: nbmp, the standard library and torch, each with two queues and a forked process that answers."""

import importlib.util
import multiprocessing
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import nbmp

UNCOUNTED = 3
TORCH_MISSING = "torch is not installed: no rows against it (python3 dev.py bench --torch installs it)"
HAS_TORCH = importlib.util.find_spec("torch") is not None


def answer(requests: Any, answers: Any) -> None:
    """Answer with how many there were, at each 0 and each array, until None comes."""
    count = 0
    while (received := requests.get()) is not None:
        count += 1
        if not isinstance(received, str):
            del received
            answers.put(count)


def answer_in_rank(_: int, requests: Any, answers: Any) -> None:
    """The same, as a rank."""
    answer(requests, answers)


@dataclass(frozen=True)
class Side:
    """One of those that are compared."""

    name: str
    requests: Any
    answers: Any
    private: Callable[[int], Any]
    shared: Callable[[int], Any]
    end: Callable[[], Any]

    def round_trip(self, make: Callable[[], Any], count: int) -> float:
        """Return the median time from `put` until the other process has answered, in seconds.

        The object is made anew each time: torch moves a tensor that is put into shared memory for good. The first times
        are not counted: memory that lay idle has been given back.
        """
        times = []
        for _ in range(UNCOUNTED + count):
            obj = make()
            begun = time.perf_counter()
            self.requests.put(obj)
            self.answers.get()
            times.append(time.perf_counter() - begun)
        return statistics.median(times[UNCOUNTED:])


def ours() -> Side:
    requests, answers = nbmp.Queue(), nbmp.Queue()
    context = nbmp.start_processes(answer_in_rank, (requests, answers), join=False, start_method="fork")
    assert context is not None
    return Side("nbmp", requests, answers, ones, lambda size: nbmp.ones(size, "u1"), ender(requests, context))


def standard() -> Side:
    return peer("multiprocessing", multiprocessing, ones, ones)


def torch() -> Side | None:
    """Return torch, None where it is not installed."""
    if not HAS_TORCH:
        return None
    import torch as module
    import torch.multiprocessing

    module.set_num_threads(1)

    def private(size: int) -> Any:
        return module.ones(size, dtype=module.uint8)

    return peer("torch", torch.multiprocessing, private, lambda size: private(size).share_memory_())


def peer(name: str, module: Any, private: Callable[[int], Any], shared: Callable[[int], Any]) -> Side:
    context = module.get_context("fork")
    requests, answers = context.Queue(), context.Queue()
    process = context.Process(target=answer, args=(requests, answers))
    process.start()
    return Side(name, requests, answers, private, shared, ender(requests, process))


def ender(requests: Any, process: Any) -> Callable[[], None]:
    def end() -> None:
        requests.put(None)
        process.join()

    return end


def ones(size: int) -> Any:
    return np.ones(size, "u1")
