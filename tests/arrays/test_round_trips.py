"""Arrays of every dtype and layout, to another process and back by every way."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nbmp
from tests.arrays import kinds
from tests.arrays.ways import (
    PATIENCE,
    WAYS,
    fill,
    give_back,
    mark_and_pass_on,
    there,
    write_through_overlap,
)
from tests.launching import functions
from tests.strategies import ONLY_BY_DESCRIPTOR

every_way = pytest.mark.parametrize("way", WAYS)
every_way_once = pytest.mark.parametrize(("way", "method"), [(way, "forkserver") for way in WAYS])


@every_way
def test_private_arrays_arrive_equal_and_private(way: str, method: str) -> None:
    sent = [view for dtype in kinds.DTYPES.values() for view in kinds.layouts_of(kinds.filled(dtype))]
    for array, back in zip(sent, there(way, method, give_back, sent), strict=True):
        assert kinds.described(back) == kinds.described(array)
        assert not nbmp.is_shared(back)


@every_way
def test_shared_arrays_come_back_as_the_same_memory(way: str, method: str) -> None:
    sent = [
        view for dtype in kinds.DTYPES.values() for view in kinds.layouts_of(nbmp.share_memory(kinds.filled(dtype)))
    ]
    for array, back in zip(sent, there(way, method, give_back, sent), strict=True):
        assert kinds.described(back) == kinds.described(array)
        assert back.strides == array.strides
        assert nbmp.is_shared(back)
        assert kinds.address(back) == kinds.address(array)


WRITEABLE = {name: view for name, view in kinds.LAYOUTS.items() if view(np.zeros(kinds.SHAPE)).flags.writeable}


@every_way_once
def test_what_is_written_there_through_a_view_is_seen_here(way: str, method: str) -> None:
    shared = [nbmp.zeros(kinds.SHAPE, "i4") for _ in WRITEABLE]
    private = [np.zeros(kinds.SHAPE, "i4") for _ in WRITEABLE]
    fill([view(array) for view, array in zip(WRITEABLE.values(), private, strict=True)])
    there(way, method, fill, [view(array) for view, array in zip(WRITEABLE.values(), shared, strict=True)])
    for name, ours, expected in zip(WRITEABLE, shared, private, strict=True):
        assert np.array_equal(ours, expected), name


@every_way
def test_two_views_of_one_array_arrive_as_views_of_one_array(way: str, method: str) -> None:
    for array in (nbmp.zeros(5), nbmp.zeros(50_000)):
        assert there(way, method, write_through_overlap, (array[:3], array[2:])) == 6
        assert array[2] == 6


@every_way_once
def test_array_twice_in_one_message_arrives_once(way: str, method: str) -> None:
    for array in (np.zeros(5), np.zeros(50_000), nbmp.zeros(5)):
        one, other = there(way, method, give_back, [array, array])
        assert one is other


@every_way_once
def test_python_objects_in_an_array_are_pickled(way: str, method: str) -> None:
    array = np.array([[None, {"a": 1}], ["text", 2**70]], dtype=object)
    structured = np.array([(1, [2])], [("number", "i4"), ("anything", object)])
    back, second = there(way, method, give_back, [array, structured])
    assert (back.tolist(), back.dtype, back.shape) == (array.tolist(), array.dtype, (2, 2))
    assert (second.tolist(), second.dtype) == (structured.tolist(), structured.dtype)


@pytest.mark.parametrize("make", [np.zeros, nbmp.zeros], ids=["private", "shared"])
def test_array_that_arrived_is_sent_on_to_a_third_process(make: Any, method: str) -> None:
    for size in (3, 50_000):
        first, second, third = nbmp.Queue(), nbmp.Queue(), nbmp.Queue()
        array = make(size)
        contexts = [
            functions.begin(mark_and_pass_on, (1, first, second), 1, method),
            functions.begin(mark_and_pass_on, (2, second, third), 1, method),
        ]
        first.put(array)
        back = third.get(timeout=PATIENCE)
        assert all(context.join(PATIENCE) for context in contexts)
        assert back[:3].tolist() == [0, 1, 2]
        assert array[:3].tolist() == ([0, 1, 2] if make is nbmp.zeros else [0, 0, 0])
        assert nbmp.is_shared(back) == (make is nbmp.zeros)


@ONLY_BY_DESCRIPTOR
def test_only_the_view_of_a_private_array_is_copied() -> None:
    nbmp.trim()
    q = nbmp.Queue()
    big = np.zeros((1000, 10_000))
    q.put([big[::10, ::100], big[:5], big[:, :50].T])
    sizes = [segment.size for segment in nbmp.memory_usage().segments if segment.purpose == "message"]
    assert len(sizes) == 1
    assert sizes[0] < 1_500_000  # 80,000 + 400,000 + 400,000 bytes
    assert [array.shape for array in q.get(timeout=5)] == [(100, 100), (5, 10_000), (50, 1000)]


def test_resize_is_refused_for_every_array_whose_memory_is_elsewhere() -> None:
    q = nbmp.Queue()
    shared = nbmp.zeros(20_000)
    q.put([shared, np.zeros(3), np.zeros(20_000)])
    for array in (shared, shared[1:], nbmp.zeros(3), *q.get(timeout=5)):
        for size in (2, 40_000):
            with pytest.raises(ValueError, match="resize"):
                array.resize(size)
            with pytest.raises(ValueError, match="resize"):
                array.resize(size, refcheck=False)
        assert not array.any()


def test_dtype_that_another_package_made_arrives() -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes", reason="ml_dtypes (bfloat16) is not installed in this environment")
    q = nbmp.Queue()
    private = np.arange(5).astype(ml_dtypes.bfloat16)
    shared = nbmp.share_memory(private)
    q.put([private, shared])
    for back in q.get(timeout=5):
        assert back.dtype == private.dtype
        assert back.tolist() == private.tolist()


def test_base_of_a_shared_array_is_sent_as_the_same_memory() -> None:
    q = nbmp.Queue()
    array = nbmp.zeros(20_000)
    q.put(array.base)
    back = q.get(timeout=5)
    assert type(back) is np.ndarray
    assert np.shares_memory(back, array)
