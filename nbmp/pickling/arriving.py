"""The receiving side: a parcel becomes an object again. Imports cloudpickle and NumPy only when the object needs them.

Things that travel along are named in the pickle by their index among them: descriptors, and segments that came by name.
While a pickle is read, those at hand are kept per thread, since pickle offers its functions no other way to reach
them.
"""

import os
import pickle
import threading
from collections.abc import Sequence
from typing import Any

from nbmp.memory.descriptors import Owned
from nbmp.pickling.parcel import LONE_SMALL, PLAIN, WRAPPED, broken, unpack, unwrap

_PICKLE = pickle.PROTO[0]
"""First byte of every pickle of ours."""
_PLAIN_PICKLE = bytes((PLAIN, _PICKLE))


class _Arriving(threading.local):
    owned: Sequence[Any] = []  # never changed, replaced


_arriving = _Arriving()


def loads(content: bytes | memoryview, owned: list[Any]) -> Any:
    """Return the object of a parcel; uses up what came along, `owned`.

    Shared arrays are the sender's memory; large private buffers are mapped, so nothing is copied here.

    Raises
    ------
    BrokenMessageError
        When it is no parcel.
    """
    if not content:
        raise broken("it is empty")
    if not owned and content[:2] == _PLAIN_PICKLE:  # most of all
        return pickle.loads(memoryview(content)[1:])
    if content[0] == WRAPPED:
        content = unwrap(content, owned)
    if content[0] >= LONE_SMALL:
        from nbmp.pickling.lone import arrived

        return arrived(memoryview(content), owned)
    pickled, buffers = unpack(content, owned)
    if not pickled or pickled[0] != _PICKLE:
        raise broken("it holds no pickle")
    if not owned and not buffers:
        return pickle.loads(pickled)
    before, _arriving.owned = _arriving.owned, owned
    try:
        return pickle.loads(pickled, buffers=buffers)
    finally:
        _arriving.owned = before


def came_along(index: int) -> Any:
    """Return what came along as number `index` with the parcel that this thread is reading."""
    return _arriving.owned[index]


class TravellingFd:
    """Stands for descriptor `index` of the parcel that it is pickled into; arrives as an `OwnedFd`."""

    def __init__(self, index: int) -> None:
        self.index = index

    def __reduce__(self) -> tuple[Any, ...]:
        return arriving_fd, (self.index,)


class OwnedFd:
    """A descriptor that is closed with its owner, unless it was given away."""

    def __init__(self, owned: Owned) -> None:
        self._owned = owned

    @property
    def fd(self) -> int:
        return self._owned.fileno()

    def detach(self) -> int:
        """Give the descriptor away: whoever called closes it. What the standard library's connections ask for."""
        fd = os.dup(self._owned.fileno())
        self._owned.close()
        return fd


def arriving_fd(index: int) -> OwnedFd:
    """Return descriptor `index`."""
    return OwnedFd(came_along(index))
