"""The receiving side: a parcel becomes an object again. Imports cloudpickle and NumPy only when the object needs them.

Things that travel as descriptors are named in the pickle by their index among the parcel's descriptors. While a
pickle is read, the descriptors at hand are kept per thread, since pickle offers its functions no other way to reach
them.
"""

import os
import pickle
import threading
from collections.abc import Sequence
from typing import Any

from nbmp.pickling.parcel import OwnedFd, Span, unpack


class _Arriving(threading.local):
    fds: Sequence[OwnedFd] = ()


_arriving = _Arriving()


def loads(content: bytes, content_span: Span | None, has_payload: bool, fds: Sequence[int]) -> Any:
    """Return the object of a parcel. Owns `fds` from here on: each is kept by what was made of it, or closed.

    Shared arrays are the sender's memory; large private buffers are mapped copy-on-write, so nothing is copied here.
    """
    owned = [OwnedFd(fd) for fd in fds]
    pickled, buffers = unpack(content, content_span, owned[-1].fd if has_payload else None)
    before, _arriving.fds = _arriving.fds, owned
    try:
        return pickle.loads(pickled, buffers=buffers)
    finally:
        _arriving.fds = before


def arriving_array(index: int, handle: tuple[Any, ...]) -> Any:
    """Return the shared array whose segment is descriptor `index`."""
    from nbmp.memory.arrays import ArrayHandle, array_at
    from nbmp.memory.segment import Segment

    # Several arrays of one segment name the same descriptor, so each takes a duplicate; `array_at` drops it when the
    # segment is mapped already.
    return array_at(Segment(_duplicate(index)), ArrayHandle(*handle))


class TravellingFd:
    """Stands for descriptor `index` of the parcel that it is pickled into; arrives as an `OwnedFd`."""

    def __init__(self, index: int) -> None:
        self.index = index

    def __reduce__(self) -> tuple[Any, ...]:
        return arriving_fd, (self.index,)


def arriving_fd(index: int) -> OwnedFd:
    """Return descriptor `index`, for whoever asks it to `detach()`: what the standard library's connections do."""
    return OwnedFd(_duplicate(index))


def _duplicate(index: int) -> int:
    return os.dup(_arriving.fds[index].fd)
