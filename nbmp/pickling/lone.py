"""A message that is one array, the commonest of all: no pickle is made, only a description.

    small     description, then the bytes
    large     description; the bytes lie in a segment that is used again
    shared    description; the segment goes along

The description is a tuple of numbers and text (`marshal`: both ends run the same Python), with its length and CRC-32 in
front: reading anything else as such may take any amount of memory. An array with a dtype that
text does not tell in full, or of a kind that has a way of its own, is pickled as part of any other object.
"""

import marshal
import struct
from typing import Any
from zlib import crc32

import numpy as np

from nbmp.memory.arrays import array_at, leased_bytes, place_of
from nbmp.memory.descriptors import Owned
from nbmp.memory.segment import Segment
from nbmp.memory.strategy import goes_by_name
from nbmp.pickling.arrays import bytes_of, dtype_text, private_array
from nbmp.pickling.parcel import INLINE, LONE_LARGE, LONE_SHARED, LONE_SMALL, NONSENSE, Parcel, broken, told
from nbmp.pickling.payloads import recycled_payload

_HEADER = struct.Struct("<BHI")  # kind, length and check of the description


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
        return Parcel(_described(LONE_SHARED, layout), (segment,))
    raw, columns_first = bytes_of(array)
    size = raw.nbytes
    form = (size, raw.readonly, columns_first, array.shape, kind)
    if size <= INLINE:
        return Parcel(_described(LONE_SMALL, form), (), (raw,))
    if goes_by_name():
        return None
    return Parcel(_described(LONE_LARGE, form), (recycled_payload(size, [(0, raw)]),))


def arrived(content: memoryview, owned: list[Owned]) -> Any:
    """Return the array of a parcel that `parcel_of` made; BrokenMessageError when it is something else."""
    try:
        return _arrived(content, owned)
    except NONSENSE as error:
        raise told(error) from None


def _described(kind: int, layout: tuple[Any, ...]) -> bytes:
    description = marshal.dumps(layout)
    return _HEADER.pack(kind, len(description), crc32(description)) + description


def _arrived(content: memoryview, owned: list[Owned]) -> Any:
    kind, length, check = _HEADER.unpack_from(content)
    end = _HEADER.size + length
    description = content[_HEADER.size : end]
    if kind > LONE_SHARED or len(description) != length or crc32(description) != check:
        raise broken("its description is damaged")
    if kind == LONE_SHARED:
        return array_at(owned[-1], *marshal.loads(description))
    size, readonly, *form = marshal.loads(description)
    if kind == LONE_SMALL:
        if len(content) != end + size:
            raise broken(f"an array of {size} bytes has {len(content) - end}")
        here: Any = bytearray(content[end:])
        return private_array(memoryview(here).toreadonly() if readonly else here, *form)
    there = leased_bytes(owned[-1])[:size]
    return private_array(there.toreadonly() if readonly else there, *form)
