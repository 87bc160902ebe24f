"""Arrays in a pickle.

    shared array     by handle: (descriptor, offset, shape, strides, dtype, writeable); the same memory arrives
    private array    its bytes as an out-of-band buffer, without a copy here; a snapshot arrives, private again
    small ones       their bytes in the pickle
    objects inside   (dtype object) pickled by NumPy

A subclass travels as a plain array, its class and its attributes, of which those that are arrays travel as above: so a
masked array over shared data and mask arrives over the same memory. One with pickling of its own is pickled by that.
"""

import pickle
import sys
from multiprocessing.context import get_spawning_popen
from operator import methodcaller
from typing import Any

import numpy as np

from nbmp.memory.arrays import array_at, place_of
from nbmp.memory.subclasses import put_together, taken_apart
from nbmp.pickling.arriving import came_along

Reduced = tuple[Any, ...]

INSIDE = 4096
"""Bytes up to which a private array lies in the pickle itself: that is less work than a place of its own."""
_VOID = np.dtype("V").num
_NUMBERS = 24
"""NumPy's own dtypes, which their `str` describes, have lower numbers than this."""
_METHODS = ("__reduce__", "__reduce_ex__", "__setstate__")


def reduce_array(array: np.ndarray[Any, Any]) -> Reduced:
    """Return how to pickle an array. The pickling's `Luggage` is where the standard library looks for it, too."""
    kind: Any = array.dtype
    if kind.hasobject:
        return array.__reduce_ex__(5)  # type: ignore[return-value]  # a tuple, for arrays
    kind = dtype_text(kind) or kind
    place = place_of(array)
    if place is not None:
        segment, offset = place
        luggage: Any = get_spawning_popen()
        index = luggage.index_of(segment.key, segment)
        return shared_array, (index, offset, array.shape, array.strides, kind, array.flags.writeable)
    if array.nbytes <= INSIDE:
        return private_array, (*_copy_of(array), array.shape, kind)
    raw, columns_first = bytes_of(array)
    return private_array, (pickle.PickleBuffer(raw), columns_first, array.shape, kind)


def _copy_of(array: np.ndarray[Any, Any]) -> tuple[bytes | bytearray, bool]:
    flags = array.flags
    columns_first = not flags.c_contiguous and flags.f_contiguous
    raw = array.tobytes("F" if columns_first else "C")
    return bytearray(raw) if flags.writeable else raw, columns_first


def dtype_text(kind: Any) -> str | None:
    """Return the dtype as text, which is pickled in a tenth of the time; None when text does not tell all of it."""
    if kind.num >= _NUMBERS or kind.num == _VOID or kind.hasobject or kind.metadata is not None:
        return None
    text: str = kind.str
    return text


def bytes_of(array: np.ndarray[Any, Any]) -> tuple[memoryview, bool]:
    """Return the bytes of an array as they lie, read-only if it is, and whether its columns come first.

    They are copied only when they have gaps.
    """
    flags = array.flags
    rows, columns_first = array, False
    if not flags.c_contiguous:
        columns_first = flags.f_contiguous
        rows = array.T if columns_first else np.ascontiguousarray(array)
    if rows.nbytes:
        raw = rows.reshape(-1).view(np.uint8).data
    else:
        raw = memoryview(bytearray())
    return raw if flags.writeable else raw.toreadonly(), columns_first


def shared_array(index: int, *place: Any) -> Any:
    """Return the shared array whose segment came along as number `index`."""
    return array_at(came_along(index), *place)


def private_array(buffer: Any, columns_first: bool, shape: tuple[int, ...], kind: Any) -> Any:
    """Return an array over the bytes that arrived; read-only where they are."""
    return np.ndarray(shape, kind, buffer, 0, None, "F" if columns_first else "C")


def reduce_subclass(array: np.ndarray[Any, Any]) -> Reduced:
    """As `reduce_array`, for an instance of a subclass."""
    kind = type(array)
    if not _pickles_as_its_base(kind):
        return array.__reduce_ex__(5)  # type: ignore[return-value]  # a tuple; or a string, which pickle takes too
    plain, attributes = taken_apart(array)
    return put_together, (plain, kind, attributes)


def _pickles_as_its_base(kind: type) -> bool:
    """Return whether a subclass of ndarray or MaskedArray leaves the pickling to that."""
    masked = sys.modules.get("numpy.ma")
    base: type = masked.MaskedArray if masked is not None and issubclass(kind, masked.MaskedArray) else np.ndarray
    return all(getattr(kind, method) is getattr(base, method) for method in _METHODS)


class ReducerTable(dict[type, Any]):
    """A pickler's dispatch table that also knows all subclasses of ndarray: it looks for exact types only."""

    def __missing__(self, kind: type) -> Any:
        reducer = reduce_subclass if issubclass(kind, np.ndarray) else _BY_ITS_OWN_MEANS
        if not issubclass(kind, type):  # a class whose metaclass this is goes by name
            self[kind] = reducer
            return reducer
        raise KeyError(kind)


_BY_ITS_OWN_MEANS = methodcaller("__reduce_ex__", 5)
"""What a pickler calls for a type that it does not find in its table."""
