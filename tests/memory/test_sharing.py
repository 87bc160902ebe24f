"""The same memory in every rank: written on one side, looked at from the other."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nbmp
from tests.launching import functions
from tests.strategies import held
from tests.waiting import tell, until


def write_own(rank: int, array: Any) -> None:
    array[rank] = rank + 1


def test_ranks_write_and_the_launching_process_sees_it(method: str) -> None:
    array = nbmp.zeros((3, 2), "i4")
    nbmp.launch(write_own, (array,), 3, start_method=method)
    assert array.tolist() == [[1, 1], [2, 2], [3, 3]]


def wait_for_value(rank: int, array: Any) -> float:
    assert until(lambda: array[0] != 0)
    array[1 + rank] = array[0] * 2
    return float(array[0])


def test_launching_process_writes_and_running_ranks_see_it(method: str) -> None:
    array = nbmp.zeros(3)
    context = functions.begin(wait_for_value, (array,), 2, method)
    array[0] = 21
    assert context.join()
    assert context.results == [21, 21]
    assert array.tolist() == [21, 42, 42]


def pass_on(rank: int, array: Any) -> int:
    if rank == 0:
        assert until(lambda: array[0] == 7)
        array[1] = 8
    else:
        array[0] = 7
        assert until(lambda: array[1] == 8)
    return int(array.sum())


def test_ranks_see_what_other_ranks_write(method: str) -> None:
    assert nbmp.launch(pass_on, (nbmp.zeros(2),), 2, start_method=method) == [15, 15]


def test_array_in_a_closure_is_the_same_memory(method: str) -> None:
    array = nbmp.zeros(2)

    def write(rank: int) -> None:
        array[rank] = 5

    nbmp.launch(write, (), 2, start_method=method)
    assert array.tolist() == [5, 5]


def test_array_inside_other_objects_is_the_same_memory(method: str) -> None:
    array = nbmp.zeros(2)
    nbmp.launch(write_deep, ({"layers": [functions.Pair(0, array)]},), 2, start_method=method)
    assert array.tolist() == [1, 2]


def write_deep(rank: int, model: Any) -> None:
    write_own(rank, model["layers"][0].other)


def test_array_that_is_global_in_a_script_is_the_same_memory(method: str, tmp_path: Path) -> None:
    from tests import scripts

    source = """
        import sys, nbmp
        weights = nbmp.zeros(3)
        def train(rank):
            weights[rank] += rank + 1
        nbmp.launch(train, (), 3, start_method=sys.argv[1])
        nbmp.launch(train, (), 3, start_method=sys.argv[1])
        print(weights.tolist())
    """
    assert scripts.output(tmp_path, source, method) == "[2.0, 4.0, 6.0]\n"


def make(rank: int) -> Any:
    return nbmp.full(3, rank, "i4")


def test_array_made_in_a_rank_outlives_it(method: str) -> None:
    arrays = nbmp.launch(make, (), 3, start_method=method)
    assert [array.tolist() for array in arrays] == [[0] * 3, [1] * 3, [2] * 3]
    assert all(map(nbmp.is_shared, arrays))
    arrays[0][0] = 9
    assert arrays[0].tolist() == [9, 0, 0]


def give_back_changed(rank: int, array: Any) -> Any:
    array[0] = 3
    return array[1:], array


def test_array_that_goes_and_comes_back_is_the_same_memory(method: str) -> None:
    array = nbmp.zeros(4)
    ((part, whole),) = nbmp.launch(give_back_changed, (array,), start_method=method)
    assert np.shares_memory(whole, array)
    assert np.shares_memory(part, array)
    part[0] = 8
    assert array.tolist() == [3, 8, 0, 0]


def overlap(rank: int, left: Any, right: Any) -> tuple[bool, float]:
    left[-1] = 6
    return bool(np.shares_memory(left, right)), float(right[0])


def test_two_views_of_one_array_still_overlap(method: str) -> None:
    array = nbmp.zeros(5)
    assert nbmp.launch(overlap, (array[:3], array[2:]), start_method=method) == [(True, 6.0)]
    assert array.tolist() == [0, 0, 6, 0, 0]


def describe(rank: int, array: Any) -> tuple[Any, ...]:
    return array.shape, array.strides, array.dtype.descr, array.flags.writeable, array.tolist(), nbmp.is_shared(array)


def test_shape_strides_dtype_and_flag_travel(method: str) -> None:
    base = nbmp.share_memory(np.arange(24, dtype=">i4").reshape(4, 6))
    read_only = base[:2]
    read_only.flags.writeable = False
    structured = nbmp.zeros(2, [("x", "f8"), ("name", "U4")])
    for array in (base, base.T, base[::-2, ::3], base[1, 2, ...], base[:0], read_only, structured, nbmp.zeros(())):
        assert nbmp.launch(describe, (array,), start_method=method) == [describe(0, array)]


def count_and_write(rank: int, arrays: list[Any]) -> int:
    for index, array in enumerate(arrays):
        array[rank] = index
    return sum(map(nbmp.is_shared, arrays))


def test_more_arrays_than_one_message_carries_descriptors(method: str) -> None:
    arrays = [nbmp.zeros(2, "i4") for _ in range(400)]
    assert nbmp.launch(count_and_write, (arrays,), 2, start_method=method) == [400, 400]
    assert [array.tolist() for array in arrays] == [[index, index] for index in range(400)]


def make_many(rank: int, count: int) -> list[Any]:
    return [nbmp.full(1, index, "i4") for index in range(count)]


def test_more_arrays_come_back_than_one_message_carries_descriptors(method: str) -> None:
    (arrays,) = nbmp.launch(make_many, (400,), start_method=method)
    assert [int(array[0]) for array in arrays] == list(range(400))


def test_descriptors_and_mappings_are_back_when_arrays_are_dropped(method: str) -> None:
    nbmp.launch(functions.pid, start_method=method)
    functions.settle()
    before = held()
    array = nbmp.zeros(10)
    results = nbmp.launch(give_back_changed, (array,), 2, start_method=method)
    results += nbmp.launch(make, (), 2, start_method=method)
    del array, results

    def is_back() -> bool:
        nbmp.trim()  # what came stays mapped a while
        gc.collect()
        return held() == before

    assert until(is_back, 5), (held(), before)


def hold_then_drop(rank: int, path: str, array: Any) -> None:
    functions.wait_for(rank, path)


def test_array_dropped_by_the_launching_process_lives_on_in_ranks(method: str, tmp_path: Path) -> None:
    array = nbmp.ones(10)
    context = functions.begin(sum_when_told, (str(tmp_path / "go"), array), 2, method)
    del array
    gc.collect()
    tell(tmp_path / "go", "now")
    assert context.join()
    assert context.results == [10, 10]


def sum_when_told(rank: int, path: str, array: Any) -> float:
    functions.wait_for(rank, path)
    return float(array.sum())


def crash_holding(rank: int, array: Any) -> None:
    array[rank] = 1
    import os

    os.kill(os.getpid(), 9)


def test_memory_survives_ranks_that_are_killed(method: str) -> None:
    array = nbmp.zeros(2)
    with pytest.raises(nbmp.ProcessExitedException):
        nbmp.launch(crash_holding, (array,), 2, start_method=method, grace_period=20)
    assert array.tolist() == [1, 1]
