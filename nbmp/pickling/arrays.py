"""Arrays in a pickle.

    shared array     by handle: (descriptor, offset, shape, strides, dtype, writeable); the same memory arrives
    private array    its bytes as an out-of-band buffer, without a copy here; a snapshot arrives, private again
    objects inside   (dtype object) pickled by NumPy

A subclass of ndarray is pickled by its own means, its parts that are plain arrays as above.
"""

import pickle
from multiprocessing.context import get_spawning_popen
from typing import Any

import numpy as np

from nbmp.memory.arrays import place_of
from nbmp.pickling.arriving import arriving_array

Reduced = tuple[Any, ...]


def reduce_array(array: np.ndarray[Any, Any]) -> Reduced:
    """Return how to pickle an array. The pickling's `Luggage` is where the standard library looks for it, too."""
    kind: Any = array.dtype
    if kind.hasobject:
        return array.__reduce_ex__(5)  # type: ignore[return-value]  # a tuple, for arrays
    flags = array.flags
    if kind.names is None and kind.char != "V" and kind.metadata is None:
        kind = kind.str  # a dtype itself takes ten times as long
    place = place_of(array)
    if place is not None:
        segment, offset = place
        luggage: Any = get_spawning_popen()
        index = luggage.index_of(segment.key, segment)
        return arriving_array, (index, offset, array.shape, array.strides, kind, flags.writeable)
    columns_first = flags.f_contiguous and not flags.c_contiguous
    rows = array.T if columns_first else array
    if not (columns_first or flags.c_contiguous):
        rows = np.ascontiguousarray(array)
    raw: Any = rows.reshape(-1).view(np.uint8) if rows.nbytes else b"" if not flags.writeable else bytearray()
    return private_array, (pickle.PickleBuffer(raw), array.shape, kind, columns_first)


def private_array(buffer: Any, shape: tuple[int, ...], kind: Any, columns_first: bool) -> Any:
    """Return an array over the bytes that arrived; read-only where they are."""
    return np.ndarray(shape, kind, buffer, 0, None, "F" if columns_first else "C")
