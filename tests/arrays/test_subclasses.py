"""Subclasses of ndarray: what is sent arrives as what it was, over the same memory where that is shared."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nbmp
from tests.arrays import kinds
from tests.arrays.functions import mask_and_set
from tests.arrays.subclasses import OwnMasked, PicklesItself, WithUnit
from tests.arrays.ways import WAYS, give_back, there

every_way = pytest.mark.parametrize(("way", "method"), [(way, "forkserver") for way in WAYS])  # nothing is inherited
RECORD = [("a", "i4"), ("b", "f8")]


def shared_ones() -> list[Any]:
    return [
        nbmp.zeros((2, 3)).view(np.matrix),
        nbmp.zeros(4, RECORD).view(np.recarray),
        nbmp.zeros(4, RECORD).view(np.recarray)[::-2],
        WithUnit(nbmp.ones(50_000), unit={"name": "metre"}),
    ]


@every_way
def test_shared_ones_arrive_as_their_class_and_the_same_memory(way: str, method: str) -> None:
    sent = shared_ones()
    for array, back in zip(sent, there(way, method, give_back, sent), strict=True):
        assert kinds.described(back) == kinds.described(array)
        assert back.strides == array.strides
        assert kinds.address(back) == kinds.address(array)
        assert nbmp.is_shared(back)
        assert vars(back) == vars(array)


@every_way
def test_private_ones_arrive_as_their_class_and_private(way: str, method: str, tmp_path: Path) -> None:
    sent: list[Any] = [
        np.arange(4).reshape(2, 2).view(np.matrix),
        np.rec.array([(1, 2.0), (3, 4.0)], dtype=RECORD),
        np.ones(50_000, RECORD).view(np.recarray)[::-2],
        WithUnit(np.arange(50_000.0), unit=["m"]),
        WithUnit(np.array([None, {}], dtype=object), unit="m"),
        PicklesItself(np.arange(50_000.0), unit="own"),
        PicklesItself(nbmp.ones(3), unit="own"),
        np.memmap(tmp_path / "file", "i4", "w+", shape=(30_000,)),
    ]
    for array, back in zip(sent, there(way, method, give_back, sent), strict=True):
        assert type(back) is type(array)
        assert not nbmp.is_shared(back)
        assert (back.dtype, back.shape, back.tolist()) == (array.dtype, array.shape, array.tolist())
        if isinstance(array, WithUnit):
            assert back.unit == array.unit
    del array, back, sent


def test_large_private_ones_are_not_in_the_pickle() -> None:
    from nbmp.pickling.quick import snapshot

    for array in (WithUnit(np.ones(50_000)), np.ma.array(np.ones(50_000), mask=np.ones(50_000, bool))):
        assert len(snapshot(array).content) < 2000


def masked_arrays() -> list[Any]:
    plain = np.arange(6.0).reshape(2, 3)
    return [
        np.ma.array(plain, mask=plain % 2 == 0, fill_value=-9),
        np.ma.array(plain.T, mask=plain.T > 3, hard_mask=True),
        np.ma.array(plain),
        np.ma.array(plain[::-1, ::2], mask=True),
        np.ma.array([(1, 2.0), (3, 4.0)], mask=[(True, False), (False, False)], dtype=RECORD),
        np.ma.array(np.array(["2020-01-01"], "M8[s]"), mask=[False]),
        np.ma.array(np.array([None, {"a": 1}], object), mask=[True, False]),
        np.ma.array(5),
        OwnMasked([1.0, 2.0], mask=[True, False]),
        np.ma.array(np.arange(100_000), mask=np.arange(100_000) % 3 == 0),
        np.ma.array(np.ones((1, 2)).view(np.matrix), mask=[[True, False]]),
    ]


def about(array: Any) -> tuple[Any, ...]:
    """Return all that a masked array is made of."""
    mask = array.mask if array.mask is np.ma.nomask else array.mask.tolist()
    return type(array), array.data.tolist(), mask, array.dtype, array.hardmask, str(array.fill_value), type(array.data)


@every_way
def test_private_masked_arrays_arrive_whole(way: str, method: str) -> None:
    sent = masked_arrays()
    for array, back in zip(sent, there(way, method, give_back, sent), strict=True):
        assert about(back) == about(array)
        assert (back.mask is np.ma.nomask) == (array.mask is np.ma.nomask)


@every_way
def test_masked_itself_arrives_as_itself(way: str, method: str) -> None:
    assert there(way, method, give_back, np.ma.masked) is np.ma.masked


@every_way
def test_data_and_mask_of_a_shared_masked_array_are_the_same_memory_there(way: str, method: str) -> None:
    array: Any = nbmp.share_memory(np.ma.array([1.0, 2.0, 3.0], mask=[False, True, False], fill_value=-9))
    kind = there(way, method, mask_and_set, array)
    assert kind == (np.ma.MaskedArray, -9, False, np.float64)
    assert array.mask.tolist() == [True, False, False]
    assert array.data.tolist() == [1, 20, 3]
    back = there(way, method, give_back, array)
    back[2] = 30
    back[1] = np.ma.masked
    assert array.tolist() == [None, None, 30]


def test_hard_mask_stays_hard_there(method: str) -> None:
    array: Any = nbmp.share_memory(np.ma.array([1.0, 2.0], mask=[False, True], hard_mask=True))
    assert there("queue", method, mask_and_set, array)[2]
    assert array.mask.tolist() == [True, True]
    assert array.data.tolist() == [1, 2]


def test_shared_masked_array_without_a_mask_gets_one_that_everybody_sees() -> None:
    q = nbmp.Queue()
    array: Any = nbmp.share_memory(np.ma.array([1.0, 2.0]))
    q.put(array)
    q.get(timeout=5)[1] = np.ma.masked
    assert array.mask.tolist() == [False, True]


@pytest.mark.parametrize("number", range(6))
def test_share_memory_of_a_masked_array_shares_data_and_mask(number: int) -> None:
    private: Any = masked_arrays()[number]
    shared: Any = nbmp.share_memory(private)
    assert nbmp.is_shared(shared)
    assert nbmp.is_shared(shared.data)
    assert nbmp.is_shared(shared.mask)
    assert not nbmp.is_shared(private)
    assert nbmp.share_memory(shared) is shared
    assert about(shared)[3:] == about(private)[3:]
    assert shared.tolist() == private.tolist()
    assert shared.strides == private.copy(order="K").strides


def test_masked_array_over_shared_data_keeps_it_when_its_mask_is_shared_too() -> None:
    data = nbmp.zeros(3)
    half = np.ma.array(data, mask=[True, False, False], copy=False)
    assert not nbmp.is_shared(half)
    shared: Any = nbmp.share_memory(half)
    assert np.shares_memory(shared.data, data)
    assert nbmp.is_shared(shared)


def test_share_memory_of_masked_objects_is_refused() -> None:
    with pytest.raises(TypeError, match="Python objects"):
        nbmp.share_memory(np.ma.array([None, {}], dtype=object))


def test_share_memory_keeps_class_and_attributes(tmp_path: Path) -> None:
    for private in (
        np.ones((1, 2)).view(np.matrix),
        WithUnit([1, 2], unit="m"),
        np.rec.array([(1, 2.0)], dtype=RECORD),
    ):
        shared = nbmp.share_memory(private)
        assert kinds.described(shared) == kinds.described(private)
        assert vars(shared) == vars(private)
        assert nbmp.is_shared(shared)
    of_a_file = np.memmap(tmp_path / "file", "i4", "w+", shape=(3,))
    assert type(nbmp.share_memory(of_a_file)) is np.ndarray
    del of_a_file


def test_class_that_somebody_taught_pickle_about_goes_its_way() -> None:
    import copyreg

    class Taught(np.ndarray):
        pass

    reducer: Any = lambda array: (str, ("as taught",))  # noqa: E731
    copyreg.pickle(Taught, reducer)
    try:
        q = nbmp.Queue()
        q.put(np.zeros(2).view(Taught))
        q.put([lambda: 1, np.zeros(2).view(Taught)])  # by the slower way
        assert q.get(timeout=5) == "as taught"
        assert q.get(timeout=5)[1] == "as taught"
    finally:
        del copyreg.dispatch_table[Taught]
