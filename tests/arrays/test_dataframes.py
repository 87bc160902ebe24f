"""pandas' frames and series over shared arrays: another process has the same memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nbmp
from nbmp.pickling.quick import snapshot
from tests.arrays.functions import set_cells, set_item
from tests.arrays.ways import WAYS, give_back, there

pd: Any = pytest.importorskip("pandas", reason="pandas is not installed in this environment")

every_way = pytest.mark.parametrize(("way", "method"), [(way, "forkserver") for way in WAYS])  # nothing is inherited
ROWS = 20_000


@every_way
def test_frame_over_one_shared_array_is_the_same_memory_there(way: str, method: str) -> None:
    array = nbmp.zeros((ROWS, 3))
    frame = pd.DataFrame(array, columns=list("abc"), copy=False)
    back = there(way, method, set_cells, frame)
    assert array[:3].tolist() == [[100, 0, 0], [0, 101, 0], [0, 0, 102]]
    assert frame.loc[2, "c"] == 102
    back.loc[5, "b"] = 7
    assert array[5, 1] == 7
    assert np.shares_memory(back.to_numpy(), array)


@every_way
def test_columns_that_are_shared_arrays_are_the_same_memory_there(way: str, method: str) -> None:
    columns = {"x": nbmp.zeros(ROWS), "y": nbmp.zeros(ROWS, "i4"), "z": nbmp.zeros(ROWS)}
    back = there(way, method, set_cells, pd.DataFrame(columns, copy=False))
    assert [column[number] for number, column in enumerate(columns.values())] == [100, 101, 102]
    assert all(np.shares_memory(back[name].to_numpy(), column) for name, column in columns.items())


@every_way
def test_series_and_index_over_shared_arrays_are_the_same_memory_there(way: str, method: str) -> None:
    values, labels = nbmp.zeros(ROWS), nbmp.share_memory(np.arange(ROWS))
    series = pd.Series(values, index=pd.Index(labels, copy=False), copy=False)
    back = there(way, method, set_item, series)
    assert values[2] == 9
    assert np.shares_memory(back.to_numpy(), values)
    assert np.shares_memory(back.index.to_numpy(), labels)


def test_times_and_nullable_integers_over_shared_arrays_are_the_same_memory_there(method: str) -> None:
    times = nbmp.share_memory(np.arange(ROWS).astype("M8[ns]"))
    numbers, missing = nbmp.zeros(ROWS, "i8"), nbmp.zeros(ROWS, "?")
    columns = {"t": times, "n": pd.arrays.IntegerArray(numbers, missing, copy=False)}
    back = there("queue", method, give_back, pd.DataFrame(columns, copy=False))
    assert np.shares_memory(back["t"].to_numpy(), times)
    numbers[3], missing[4] = 33, True
    assert back["n"].iloc[3] == 33
    assert back["n"].iloc[4] is pd.NA


@every_way
def test_private_frame_arrives_equal_writeable_and_private(way: str, method: str) -> None:
    frame = private_frame()
    back = there(way, method, give_back, frame)
    pd.testing.assert_frame_equal(back, frame)
    back.loc[0, "number"] = -1.0
    assert frame.loc[0, "number"] == 1


def private_frame() -> Any:
    times = pd.date_range("2020", periods=ROWS, freq="s")
    return pd.DataFrame(
        {
            "number": np.ones(ROWS),
            "integer": np.arange(ROWS),
            "flag": np.arange(ROWS) % 2 == 0,
            "time": times,
            "time there": times.tz_localize("UTC"),
            "kind": pd.Categorical.from_codes(np.zeros(ROWS, "i1"), ["u", "v"]),
            "nullable": pd.array(np.ones(ROWS, "i8"), dtype="Int64"),
        }
    )


def test_large_columns_of_a_private_frame_are_not_in_the_pickle() -> None:
    assert len(snapshot(private_frame()).content) < 4000


def test_column_that_is_replaced_is_private_from_then_on() -> None:
    array = nbmp.zeros((ROWS, 2))
    frame = pd.DataFrame(array, columns=list("ab"), copy=False)
    frame["a"] = 1.0
    assert not array.any()
