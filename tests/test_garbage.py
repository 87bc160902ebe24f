"""What a failure keeps: nothing of the function that heard of it. Its arrays would stay until garbage is collected."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from typing import Any

import numpy as np
import pytest

import nbmp
from nbmp.executor import ProcessPoolExecutor
from nbmp.pool import Pool


def fail(number: int) -> None:
    raise ValueError(number)


def by_launch() -> None:
    nbmp.launch(fail, nprocs=2, start_method="fork")


def by_join() -> None:
    context = nbmp.start_processes(fail, (), 2, join=False, start_method="fork")
    assert context is not None
    context.join()


def by_pool(call: Callable[[Pool], object]) -> Callable[[], None]:
    def run() -> None:
        with Pool(1, start_method="fork") as pool:
            call(pool)

    return run


def by_executor(call: Callable[[Executor], object]) -> Callable[[], None]:
    def run() -> None:
        with ProcessPoolExecutor(1) as executor:
            call(executor)

    return run


WAYS = {
    "launch": by_launch,
    "join": by_join,
    "map": by_pool(lambda pool: pool.map(fail, [1])),
    "starmap": by_pool(lambda pool: pool.starmap(fail, [(1,)])),
    "imap": by_pool(lambda pool: list(pool.imap(fail, [1]))),
    "apply": by_pool(lambda pool: pool.apply(fail, (1,))),
    "get": by_pool(lambda pool: pool.apply_async(fail, (1,)).get()),
    "executor's map": by_executor(lambda executor: list(executor.map(fail, [1]))),
    "result": by_executor(lambda executor: executor.submit(fail, 1).result()),
}


@pytest.fixture
def no_collector() -> Iterator[None]:
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("no_collector")
@pytest.mark.parametrize("way", WAYS)
def test_arrays_of_whoever_heard_of_a_failure_are_gone_with_its_frame(way: str) -> None:
    def hear() -> weakref.ref[Any]:
        array = np.zeros(1)
        try:
            WAYS[way]()
        except (ValueError, nbmp.ProcessRaisedException):
            return weakref.ref(array)
        raise AssertionError("nothing failed")

    assert hear()() is None
