"""A message that is one array, the commonest of all: no pickle is made, only a description.

    small     description, then the bytes
    large     description; the bytes lie in a segment that is used again
    shared    description; the segment goes along

The description is a tuple of numbers and text (`marshal`: both ends run the same Python). An array with a dtype that
text does not tell in full, or of a kind that has a way of its own, is pickled as part of any other object.
"""

import marshal
from typing import Any

import numpy as np

from nbmp.memory.arrays import array_at, leased_bytes, place_of
from nbmp.memory.descriptors import Owned
from nbmp.memory.segment import Segment
from nbmp.memory.strategy import goes_by_name
from nbmp.pickling.arrays import bytes_of, dtype_text, private_array
from nbmp.pickling.parcel import INLINE, LONE_LARGE, LONE_SHARED, LONE_SMALL, Parcel
from nbmp.pickling.payloads import recycled_payload

_SMALL, _LARGE, _SHARED = (bytes([kind]) for kind in (LONE_SMALL, LONE_LARGE, LONE_SHARED))


def parcel_of(array: np.ndarray[Any, Any]) -> Parcel | None:
    """Return an array as a parcel, small ones not copied yet; None when it has to be pickled."""
    kind = dtype_text(array.dtype)
    if kind is None:
        return None
    place = place_of(array)
    if place is not None:
        segment, offset = place
        if type(segment) is not Segment:
            return None
        layout = (offset, array.shape, array.strides, kind, array.flags.writeable)
        return Parcel(_SHARED + marshal.dumps(layout), (segment,))
    raw, columns_first = bytes_of(array)
    size = raw.nbytes
    description = marshal.dumps((size, raw.readonly, columns_first, array.shape, kind))
    if size <= INLINE:
        return Parcel(_SMALL + description, (), (raw,))
    if goes_by_name():
        return None
    return Parcel(_LARGE + description, (recycled_payload(size, [(0, raw)]),))


def arrived(content: memoryview, owned: list[Owned]) -> Any:
    """Return the array of a parcel that `parcel_of` made."""
    kind = content[0]
    if kind == LONE_SHARED:
        return array_at(owned[-1], *marshal.loads(content[1:]))
    size, readonly, *form = marshal.loads(content[1:])
    if kind == LONE_SMALL:
        here: Any = bytearray(content[len(content) - size :])
        return private_array(memoryview(here).toreadonly() if readonly else here, *form)
    there = leased_bytes(owned[-1])[:size]
    return private_array(there.toreadonly() if readonly else there, *form)
