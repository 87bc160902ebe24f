"""Views of shared arrays: shared themselves, and enough to keep the memory."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nbmp
from nbmp.memory.arrays import place_of
from nbmp.memory.segment import Segment
from tests.strategies import ONLY_BY_DESCRIPTOR, held

VIEWS: dict[str, Callable[[Any], Any]] = {
    "slice": lambda a: a[1:3],
    "step": lambda a: a[::2],
    "reversed": lambda a: a[::-1, ::-1],
    "column": lambda a: a[:, 1],
    "element as array": lambda a: a[1, 2, ...],
    "transposed": lambda a: a.T,
    "reshaped": lambda a: a.reshape(2, 2, -1),
    "ravel": lambda a: a.ravel(),
    "other dtype": lambda a: a.view("u1"),
    "real part": lambda a: a.view("c8").real,
    "diagonal": lambda a: a.diagonal(),
    "broadcast": lambda a: np.broadcast_to(a, (3, *a.shape)),
    "sliding window": lambda a: np.lib.stride_tricks.sliding_window_view(a, 2, axis=0),
    "as strided": lambda a: np.lib.stride_tricks.as_strided(a, (2, 2), (32, 4)),
    "new axis": lambda a: a[None, :, None],
    "from buffer": lambda a: np.frombuffer(a, "i4"),
    "of a memoryview": lambda a: np.asarray(memoryview(a)),
    "view of a view of a view": lambda a: a[1:].T[1:].T[:, ::-1],
    "subclass": lambda a: a.view(np.recarray),
    "swapped axes": lambda a: np.swapaxes(a, 0, 1),
    "by dlpack": lambda a: np.from_dlpack(a),
    "view of one by dlpack": lambda a: np.from_dlpack(a[1:])[1:].T,
    "split": lambda a: np.split(a, 2)[1],
}


def new() -> Any:
    array = nbmp.zeros((4, 8), "i4")
    array[...] = np.arange(32).reshape(4, 8)
    return array


def segment_of(array: Any) -> Any:
    """Return the segment that a shared array lies in."""
    place = place_of(array)
    assert place is not None
    return place[0]


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
def test_view_is_shared_and_keeps_the_memory(view: Callable[[Any], Any]) -> None:
    array = new()
    expected = np.array(view(np.arange(32, dtype="i4").reshape(4, 8)))
    part = view(array)
    assert nbmp.is_shared(part)
    inode = segment_of(part).key[1]
    del array
    gc.collect()
    assert f" {inode} " in Path("/proc/self/maps").read_text()
    assert np.array_equal(part, expected)


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
def test_last_view_that_goes_frees_the_memory(view: Callable[[Any], Any]) -> None:
    before = held()
    part = view(new())
    gc.collect()
    assert held()[1] > before[1]
    del part
    gc.collect()
    assert held() == before


def test_copy_is_private() -> None:
    for copy in (new().copy(), new() + 1, new()[[0, 1]], new().astype("f8"), np.array(new())):
        assert not nbmp.is_shared(copy)


@ONLY_BY_DESCRIPTOR
def test_size_is_sealed() -> None:
    segment = segment_of(new())
    for size in (0, 1, 10_000):
        with pytest.raises(PermissionError):
            os.ftruncate(segment.fd, size)


@ONLY_BY_DESCRIPTOR
def test_segment_is_closed_in_programs_that_are_executed() -> None:
    assert not os.get_inheritable(segment_of(new()).fd)


@ONLY_BY_DESCRIPTOR
def test_segment_has_no_name_in_dev_shm() -> None:
    array = new()
    assert os.readlink(f"/proc/self/fd/{segment_of(array).fd}").startswith("/memfd:")


def test_thousand_arrays_come_and_go_without_a_trace() -> None:
    before = held()
    for _ in range(1000):
        nbmp.ones(10)
    assert held() == before


@ONLY_BY_DESCRIPTOR
def test_segment_that_is_dropped_closes_its_descriptor_once() -> None:
    segment = Segment.create(10)
    fd = segment.fd
    del segment
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(fd)
