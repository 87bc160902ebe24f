"""Shared arrays: plain `numpy.ndarray`s whose memory lies in a segment.

    array or view ── base ──> _Root ── base ──> mmap of the segment
                                └── segment (descriptor, key)

The root sits directly on the mapping: NumPy shortens a base chain by skipping plain arrays, and would otherwise drop
the root, and with it the segment, under a living view. A view keeps its root by its base chain, so a segment lives
exactly as long as something refers to its memory, and what a user does with views needs no bookkeeping.
"""

import math
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from nbmp.memory.segment import Key, Segment


class _Root(np.ndarray):
    """All bytes of a segment: the bottom of the base chain of every array in it."""

    segment: Segment


_roots: "WeakValueDictionary[Key, _Root]" = WeakValueDictionary()
"""The segments mapped in this process: one that arrives a second time is the same memory, not a second mapping."""


class ArrayHandle(NamedTuple):
    """What travels in place of a shared array: a place in a segment."""

    offset: int
    """Bytes from the start of the segment to the array's first element."""
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: np.dtype[Any]
    writeable: bool


Shape = int | tuple[int, ...]


def empty(shape: Shape, dtype: DTypeLike = float, order: str = "C") -> NDArray[Any]:
    """Return a new shared array with zeros in it (fresh memory always is).

    Parameters
    ----------
    shape : int or tuple of int
    dtype : data type, default float64
        Not `object` nor a type with Python objects in it.
    order : {"C", "F"}
        Layout: rows or columns first.

    Raises
    ------
    TypeError
        For a dtype that holds Python objects.
    SharedMemoryError
        When it is larger than the memory left.
    """
    kind = np.dtype(dtype)
    if kind.hasobject:
        raise TypeError(
            f"dtype {kind} holds Python objects, which live in one process only and cannot be shared: "
            "use a fixed-size dtype, such as a number or 'U20' for text"
        )
    extents = (shape,) if isinstance(shape, int | np.integer) else tuple(int(extent) for extent in shape)
    if any(extent < 0 for extent in extents):
        raise ValueError(f"negative dimensions are not allowed: shape {extents}")
    root = _root(Segment.create(math.prod(extents) * kind.itemsize))
    return np.ndarray(extents, kind, root, order="F" if order == "F" else "C")


def zeros(shape: Shape, dtype: DTypeLike = float, order: str = "C") -> NDArray[Any]:
    """Return a new shared array of zeros; parameters and errors as for `empty`."""
    return empty(shape, dtype, order)


def ones(shape: Shape, dtype: DTypeLike = float, order: str = "C") -> NDArray[Any]:
    """Return a new shared array of ones; parameters and errors as for `empty`."""
    return full(shape, 1, dtype, order)


def full(shape: Shape, fill_value: ArrayLike, dtype: DTypeLike | None = None, order: str = "C") -> NDArray[Any]:
    """Return a new shared array filled with `fill_value`, whose dtype it has unless given; otherwise as for `empty`."""
    array = empty(shape, np.asarray(fill_value).dtype if dtype is None else dtype, order)
    array[...] = fill_value
    return array


def share_memory(array: NDArray[Any]) -> NDArray[Any]:
    """Return a shared array with the contents of `array`: one copy, or `array` itself when it is shared already.

    The given array stays private: NumPy cannot move the memory of an existing array, so keep and use what is returned.
    Shape, dtype, memory layout (C or Fortran) and read-only flag are kept.

    Raises
    ------
    TypeError
        For what is not an array, for masked arrays, and for dtypes that hold Python objects.
    SharedMemoryError
        When it is larger than the memory left.
    """
    if not isinstance(array, np.ndarray):
        raise TypeError(f"share_memory takes a numpy.ndarray, not {type(array).__name__}: give it numpy.asarray(...)")
    if isinstance(array, np.ma.MaskedArray):
        raise TypeError("a masked array is two arrays: share array.data and array.mask each")
    if is_shared(array):
        return array
    columns_first = array.flags.f_contiguous and not array.flags.c_contiguous
    shared = empty(array.shape, array.dtype, "F" if columns_first else "C")
    shared[...] = array
    shared.flags.writeable = array.flags.writeable
    return shared


def is_shared(array: object) -> bool:
    """Return whether this array, or the array it is a view of, lies in shared memory."""
    return _root_of(array) is not None


def handle_of(array: NDArray[Any]) -> tuple[Segment, ArrayHandle] | None:
    """Return the segment of a shared array and its place there; None for a private one."""
    root = _root_of(array)
    if root is None:
        return None
    offset = array.__array_interface__["data"][0] - root.__array_interface__["data"][0]
    return root.segment, ArrayHandle(offset, array.shape, array.strides, array.dtype, array.flags.writeable)


def array_at(segment: Segment, handle: ArrayHandle) -> NDArray[Any]:
    """Return the array at this place, over the mapping that this process already has of the segment if it has one."""
    root = _roots.get(segment.key)
    if root is None:
        root = _root(segment)
    array: NDArray[Any] = np.ndarray(handle.shape, handle.dtype, root, handle.offset, handle.strides)
    array.flags.writeable = handle.writeable
    return array


def _root(segment: Segment) -> _Root:
    root = np.ndarray.__new__(_Root, (segment.size,), np.uint8, segment.map)
    root.segment = segment
    _roots[segment.key] = root
    return root


def _root_of(array: object) -> _Root | None:
    while array is not None:
        if type(array) is _Root:
            return array
        array = array.obj if isinstance(array, memoryview) else getattr(array, "base", None)
    return None
