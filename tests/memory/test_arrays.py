"""Making shared arrays: shapes, dtypes, orders, and what is refused."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest

import nbmp

DTYPES = [
    "f8",
    "f4",
    "i1",
    "u8",
    "?",
    "c16",
    "U20",
    "S3",
    "M8[ns]",
    "m8[s]",
    ">i4",
    [("x", "f8"), ("name", "U4")],
    "V7",
]
SHAPES: list[Any] = [5, (5,), (2, 3), (2, 3, 4), (), 0, (0, 3), (3, 0), np.int64(4), [2, 2]]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_every_fixed_size_dtype_can_be_shared(dtype: Any) -> None:
    array = nbmp.zeros((2, 3), dtype)
    assert type(array) is np.ndarray
    assert array.dtype == np.dtype(dtype)
    assert nbmp.is_shared(array)
    assert array.tobytes() == bytes(array.nbytes)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("order", ["C", "F"])
def test_every_shape_and_order_is_that_of_numpy(shape: Any, order: Any) -> None:
    ours, numpys = nbmp.ones(shape, "i4", order), np.ones(shape, "i4", order)
    assert (ours.shape, ours.flags.c_contiguous) == (numpys.shape, numpys.flags.c_contiguous)
    assert ours.strides == numpys.strides or ours.size == 0
    assert np.array_equal(ours, numpys)
    assert ours.flags.writeable
    assert ours.flags.aligned
    assert nbmp.is_shared(ours)


def test_default_dtype_is_that_of_numpy() -> None:
    assert nbmp.zeros(3).dtype == nbmp.ones(3).dtype == nbmp.empty(3).dtype == np.float64


@pytest.mark.parametrize("value", [7, 2.5, True, 1j, "text", np.float32(3), [1, 2, 3]])
def test_full_takes_the_dtype_of_its_value_unless_told(value: Any) -> None:
    ours, numpys = nbmp.full((2, 3), value), np.full((2, 3), value)
    assert ours.dtype == numpys.dtype
    assert np.array_equal(ours, numpys)


def test_full_converts_to_the_dtype_asked_for() -> None:
    assert nbmp.full(2, 3.7, "i4").tolist() == [3, 3]


@pytest.mark.parametrize("make", [nbmp.zeros, nbmp.ones, nbmp.empty])
@pytest.mark.parametrize("dtype", [object, [("number", "f8"), ("anything", object)]], ids=str)
def test_python_objects_are_refused_with_the_reason(make: Any, dtype: Any) -> None:
    with pytest.raises(TypeError, match="holds Python objects, which live in one process"):
        make(3, dtype)


def test_value_that_is_a_python_object_is_refused() -> None:
    with pytest.raises(TypeError, match="holds Python objects"):
        nbmp.full(3, None)  # type: ignore[arg-type]


@pytest.mark.parametrize("shape", [-1, (2, -3), (-1, 0)])
def test_negative_extent_is_refused(shape: Any) -> None:
    with pytest.raises(ValueError, match="negative dimensions are not allowed"):
        nbmp.zeros(shape)


@pytest.mark.parametrize("shape", [(2**40, 2**10), 10**15, (2**62, 2**62)])
def test_more_than_the_memory_left_is_refused_with_the_figures_and_leaves_nothing(shape: Any) -> None:
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(nbmp.SharedMemoryError, match=r"\d+ bytes \([\d.]+ GB\).*only [\d.]+ [GM]B are left") as raised:
        nbmp.zeros(shape)
    assert str(int(np.prod([int(extent) for extent in np.atleast_1d(shape).tolist()], dtype=object)) * 8) in str(
        raised.value
    )
    assert len(os.listdir("/proc/self/fd")) == before


def test_share_memory_of_more_than_is_left_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nbmp.platforms.available_memory", lambda: 10**6)
    with pytest.raises(MemoryError, match="80000000 bytes"):
        nbmp.share_memory(np.zeros(10**7))


def test_share_memory_copies_once_and_leaves_the_original_private() -> None:
    private = np.arange(6.0).reshape(2, 3)
    shared = nbmp.share_memory(private)
    assert nbmp.is_shared(shared)
    assert not nbmp.is_shared(private)
    assert np.array_equal(shared, private)
    shared[0, 0] = 9
    assert private[0, 0] == 0


def test_share_memory_of_a_shared_array_is_that_array() -> None:
    shared = nbmp.zeros(3)
    assert nbmp.share_memory(shared) is shared
    view = shared[1:]
    assert nbmp.share_memory(view) is view


@pytest.mark.parametrize("order", ["C", "F"])
def test_share_memory_keeps_layout_and_dtype(order: Any) -> None:
    private = np.array([[1, 2, 3], [4, 5, 6]], ">i2", order=order)
    shared = nbmp.share_memory(private)
    assert (shared.strides, shared.dtype) == (private.strides, private.dtype)


def test_share_memory_keeps_a_read_only_array_read_only() -> None:
    private = np.arange(3)
    private.flags.writeable = False
    assert not nbmp.share_memory(private).flags.writeable


@pytest.mark.parametrize("array", [np.zeros((0, 3)), np.array(5.0), np.zeros(10)[::2], np.broadcast_to(1.0, (3, 3))])
def test_share_memory_takes_every_kind_of_array(array: Any) -> None:
    shared = nbmp.share_memory(array)
    assert nbmp.is_shared(shared)
    assert shared.shape == array.shape
    assert np.array_equal(shared, array)


@pytest.mark.parametrize("wrong", [[1, 2], 3.0, None, b"bytes", memoryview(b"bytes"), np.float64(1)])
def test_share_memory_takes_arrays_only(wrong: Any) -> None:
    with pytest.raises(TypeError, match=r"share_memory takes a numpy.ndarray, not"):
        nbmp.share_memory(wrong)


def test_share_memory_refuses_objects() -> None:
    with pytest.raises(TypeError, match="Python objects"):
        nbmp.share_memory(np.array([None, {}]))


@pytest.mark.parametrize("thing", [np.zeros(3), 3, None, [nbmp], "text", np.float64(2), memoryview(bytearray(3))])
def test_nothing_else_is_shared(thing: Any) -> None:
    assert not nbmp.is_shared(thing)
