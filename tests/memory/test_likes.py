"""Shared arrays like another array: everything as NumPy's functions of the same names make it."""

from __future__ import annotations

from itertools import permutations, product
from typing import Any

import numpy as np
import pytest

import nbmp

PARTS: list[Any] = [np.s_[:], np.s_[::-1], np.s_[:, ::2], np.s_[..., 1:2], np.s_[0:0], np.s_[1], np.s_[1, 0, ..., 1]]
SHAPES: list[Any] = [None, 7, np.int64(7), (5, 6), (3, 2, 4), [3, 2, 4], ()]


def steps(array: Any) -> list[int]:
    """Return the strides that mean something: those of axes with several elements."""
    return [step for step, extent in zip(array.strides, array.shape, strict=True) if extent > 1 and array.size]


@pytest.mark.parametrize("order", ["K", "A", "C", "F"])
def test_shape_dtype_and_order_of_axes_are_those_of_numpy(order: Any) -> None:
    base = np.zeros((2, 3, 4), ">i2")
    for axes, part, shape, dtype in product(permutations(range(3)), PARTS, SHAPES, [None, "c16"]):
        like: Any = base.transpose(axes)[part]
        ours, numpys = nbmp.empty_like(like, dtype, order, shape=shape), np.empty_like(like, dtype, order, shape=shape)
        assert (ours.shape, ours.dtype, steps(ours)) == (numpys.shape, numpys.dtype, steps(numpys))


def test_order_of_axes_is_kept_for_repeated_and_reversed_ones() -> None:
    for like in (np.broadcast_to(np.zeros(3), (4, 3)), np.zeros((2, 3, 4))[::-1].T, np.zeros((1, 4, 1)).T):
        assert steps(nbmp.empty_like(like)) == steps(np.empty_like(like))


def test_values_are_zeros_ones_and_what_is_asked_for() -> None:
    like = np.arange(6, dtype="i4").reshape(2, 3)
    assert nbmp.zeros_like(like).tolist() == [[0] * 3] * 2
    assert nbmp.ones_like(like).tolist() == [[1] * 3] * 2
    assert nbmp.full_like(like, 7.9).tolist() == [[7] * 3] * 2
    assert nbmp.full_like(like, 7.5, "f8", shape=2).tolist() == [7.5, 7.5]
    assert nbmp.full_like(like, [1, 2, 3]).tolist() == [[1, 2, 3]] * 2


@pytest.mark.parametrize(
    "prototype", [[[1, 2], [3, 4]], 2.5, np.ones((1, 2)).view(np.matrix), np.ma.array([1, 2], mask=True)]
)
def test_every_prototype_gives_a_plain_shared_array(prototype: Any) -> None:
    for make in (nbmp.empty_like, nbmp.zeros_like, nbmp.ones_like):
        array = make(prototype)
        assert type(array) is np.ndarray
        assert nbmp.is_shared(array)
        assert array.flags.writeable
        assert (array.shape, array.dtype) == (np.shape(prototype), np.asarray(prototype).dtype)


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(TypeError, match="Python objects"):
        nbmp.zeros_like(np.array([None]))
    wrong: Any = "X"
    with pytest.raises(ValueError, match="'K', 'A', 'C' and 'F'"):
        nbmp.zeros_like([1], order=wrong)
    with pytest.raises(ValueError, match="negative"):
        nbmp.zeros_like([1], shape=-1)


def test_share_memory_keeps_the_order_of_axes() -> None:
    for axes in permutations(range(3)):
        private = np.arange(24).reshape(2, 3, 4).transpose(axes)
        shared = nbmp.share_memory(private)
        assert shared.strides == private.strides
        assert np.array_equal(shared, private)
