"""Private arrays as arguments: one copy for all ranks, each rank's own, the launching process' unchanged."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nbmp
from tests.launching import functions
from tests.strategies import held
from tests.waiting import tell, until

MB = 1_000_000
BY_MESSAGE = pytest.mark.parametrize("method", ["forkserver", "spawn"])


def private_mb(rank: int, array: Any, together: Any) -> tuple[float, float]:
    """Return the sum, and how much memory of this process is its own while all ranks have all of the array."""
    total = float(array[:: 4096 // 8].sum())
    together[0, rank] = 1
    assert until(together[0].all)
    rollup = Path("/proc/self/smaps_rollup").read_text()
    together[1, rank] = 1
    assert until(together[1].all)
    return total, sum(map(int, re.findall(r"Private_Dirty: +(\d+)", rollup))) * 1024 / MB


def test_large_array_is_not_copied_by_ranks(method: str) -> None:
    empty = nbmp.launch(private_mb, (np.ones(1), nbmp.zeros((2, 3))), 3, start_method=method)
    base = max(own for _, own in empty)
    array = np.ones(25 * MB)  # 200 MB
    results = nbmp.launch(private_mb, (array, nbmp.zeros((2, 3))), 3, start_method=method)
    assert {total for total, _ in results} == {float(array[:: 4096 // 8].sum())}
    assert max(own for _, own in results) < base + 20


def write_own(rank: int, array: Any) -> float:
    assert array.flags.writeable
    array[:] = rank + 1
    return float(array.sum())


@pytest.mark.parametrize("size", [10, 100_000])
def test_rank_may_write_to_its_own_and_nobody_else_sees_it(method: str, size: int) -> None:
    array = np.zeros(size)
    assert nbmp.launch(write_own, (array,), 3, start_method=method) == [size * 1.0, size * 2.0, size * 3.0]
    assert not array.any()


def flags(rank: int, arrays: list[Any]) -> list[tuple[bool, Any, Any, Any]]:
    return [(array.flags.writeable, array.shape, array.dtype.str, array.tobytes()) for array in arrays]


def test_layout_dtype_and_read_only_flag_travel(method: str) -> None:
    read_only = np.arange(20_000.0)
    read_only.flags.writeable = False
    small_read_only = np.arange(3)
    small_read_only.flags.writeable = False
    columns_first = np.asfortranarray(np.arange(30_000.0).reshape(100, 300))
    strided = np.arange(50_000)[::3]
    arrays = [
        read_only,
        small_read_only,
        columns_first,
        strided,
        np.array(3),
        np.zeros((0, 2)),
        np.arange(9, dtype=">i2"),
    ]
    assert nbmp.launch(flags, (arrays,), start_method=method) == [flags(0, arrays)]


def identical(rank: int, one: Any, other: list[Any]) -> bool:
    return one is other[0]


def test_object_given_twice_arrives_once(method: str) -> None:
    array = np.zeros(100_000)
    assert nbmp.launch(identical, (array, [array]), start_method=method) == [True]


def buffers(rank: int, things: list[Any]) -> list[Any]:
    return [(type(thing), bytes(thing)) for thing in things]


def test_large_bytes_and_bytearrays_travel(method: str) -> None:
    things = [b"a" * 300_000, bytearray(b"b" * 300_000), b"", b"small"]
    assert nbmp.launch(buffers, (things,), start_method=method) == [buffers(0, things)]


def give_large(rank: int) -> Any:
    return np.full(MB, rank)


def test_memory_of_a_large_result_is_given_back_when_it_is_dropped(method: str) -> None:
    functions.settle()
    before = held()
    results = nbmp.launch(give_large, (), 2, start_method=method)
    assert [int(result.sum()) for result in results] == [0, MB]
    assert held()[1] > before[1]
    del results
    functions.settle()
    assert held() == before


@BY_MESSAGE
def test_arguments_are_as_they_were_at_the_launch(method: str, tmp_path: Path) -> None:
    array, items = np.zeros(100_000), [1]
    context = functions.begin(look_when_told, (str(tmp_path / "go"), array, items), 2, method)
    array[:] = 5
    items.append(2)
    tell(tmp_path / "go", "now")
    assert context.join()
    assert context.results == [(0.0, [1]), (0.0, [1])]


def look_when_told(rank: int, path: str, array: Any, items: list[int]) -> tuple[float, list[int]]:
    functions.wait_for(rank, path)
    return float(array.max()), items


def counted(rank: int, thing: Any) -> int:
    return int(thing.number)


class Counted:
    """Counts how often it is pickled."""

    times = 0

    def __init__(self, number: int) -> None:
        self.number = number

    def __reduce__(self) -> tuple[Any, ...]:
        Counted.times += 1
        return Counted, (self.number,)


@BY_MESSAGE
def test_task_is_pickled_once_however_many_ranks_there_are(method: str) -> None:
    Counted.times = 0
    assert nbmp.launch(counted, (Counted(3),), 4, start_method=method) == [3, 3, 3, 3]
    assert Counted.times == 1
