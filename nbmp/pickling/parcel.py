"""A parcel: one pickled object, ready to be sent, with the descriptors that travel along.

    content   bytes: a header, the sizes of the buffers and the pickle
    tail      the buffers, while all of it is small: they follow the content in the packet
    owners    of the descriptors: the segments of shared arrays, whatever else asked to travel, and last the payload
    payload   a segment with the large part: the buffers, and sizes and pickle too when they are large

Which kinds of payload there are is told in `nbmp.pickling.payloads`.

Who frees what: the sender's descriptors end with the `Parcel`; a receiver owns what arrived.
"""

import array
import errno
import pickle
import struct
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from nbmp.errors import BrokenMessageError, SharedMemoryError
from nbmp.memory.descriptors import Owned
from nbmp.memory.room import is_scarce
from nbmp.memory.strategy import goes_by_name
from nbmp.pickling.payloads import (
    Lent,
    content_of,
    map_leased,
    map_named,
    map_private,
    named_payload,
    recycled_payload,
    sealed_payload,
)

INLINE = 72 * 1024
"""Bytes up to which a message travels whole in its packet (measured: a segment wins above about 100 kB)."""

_ALIGNMENT = 64
PLAIN, _INLINE, _SEALED, _RECYCLED, _NAMED, WRAPPED = range(6)
LONE_SMALL, LONE_LARGE, LONE_SHARED = range(6, 9)
"""The content is not a pickle: see `nbmp.pickling.lone`."""
_HEADER = struct.Struct("<BxxxIIQ")  # kind, number of buffers, length of the pickle, where sizes and pickle lie outside
_IN_RECYCLED = (_RECYCLED, LONE_LARGE)
_WRAPPING = struct.Struct("<BQ")  # kind, length of the content, all of which is in the payload
_HERE = (1 << 64) - 1
"""In place of that offset: sizes and pickle follow in the content."""
_PLAIN_BYTE = bytes([PLAIN])
_HEADER_SIZE = _HEADER.size


class FdOwner(Protocol):
    """Has a descriptor, or -1 for one: it travels by name (see `nbmp.pickling.names`)."""

    @property
    def fd(self) -> int: ...


class Held:
    """A descriptor that travels: a lease, a duplicate of somebody's descriptor."""

    __slots__ = ("fd", "owned")

    def __init__(self, owned: Owned) -> None:
        self.owned = owned
        self.fd = owned.fileno()


class Parcel:
    """A pickled object on its way. Keeps what it refers to alive."""

    __slots__ = ("content", "owners", "tail")

    def __init__(self, content: bytes, owners: Sequence[FdOwner], tail: Sequence[memoryview] = ()) -> None:
        self.content = content
        self.owners = owners
        self.tail = tail

    def settled(self) -> "Parcel":
        """Return this parcel with a copy of what still is the sender's memory, which may change from now on."""
        if self.tail:
            self.content, self.tail = b"".join((self.content, *self.tail)), ()
        return self

    def put_away(self) -> None:
        """It has to wait: settle it, and give up descriptors that it can do without, if they are scarce."""
        self.settled()
        payload: Any = self.owners[-1] if self.owners else None
        if isinstance(payload, Lent):
            payload.put_away()
        elif self.content[0] == _NAMED and is_scarce(payload.fileno()):  # it will go without a name
            stored = Lent(None, content_of(payload.fileno()))
            payload.unlink()
            self.owners = [*self.owners[:-1], stored]
            self.content = bytes([_RECYCLED]) + self.content[1:]

    def outside(self) -> "Parcel":
        """Return the same parcel with all its bytes in a payload: for a channel with room for small packets only."""
        content = self.settled().content
        payload = recycled_payload(len(content), [(0, memoryview(content))])
        return Parcel(_WRAPPING.pack(WRAPPED, len(content)), [*self.owners, payload])

    def carrying(self, owner: FdOwner) -> "Parcel":
        """Return this parcel with one descriptor more, which the receiver closes when it has read the parcel."""
        last = len(self.owners) - (self.content[0] >= _SEALED)
        return Parcel(self.content, [*self.owners[:last], owner, *self.owners[last:]], self.tail)


def pack(
    pickled: Sequence[bytes], buffers: Sequence[pickle.PickleBuffer], owners: Sequence[FdOwner], *, recycled: bool
) -> Parcel:
    """Return a parcel of a pickle, given in pieces, and its out-of-band buffers.

    What is large is copied here, once. Small buffers are the tail, not copied yet.
    """
    length = sum(map(len, pickled))
    if not buffers and length < INLINE:
        return Parcel(b"".join((_PLAIN_BYTE, *pickled)), owners)
    views = [buffer.raw() for buffer in buffers]
    meta = array.array("q", [~view.nbytes if view.readonly else view.nbytes for view in views]).tobytes()
    if len(meta) + length + sum([view.nbytes for view in views]) <= INLINE:
        header = _HEADER.pack(_INLINE, len(views), length, _HERE)
        return Parcel(b"".join((header, meta, *pickled)), owners, views)
    writes, end = [], 0
    for view in views:
        writes.append((end, view))
        end += -(-view.nbytes // _ALIGNMENT) * _ALIGNMENT
    named = goes_by_name()
    kind = (_NAMED if named else _RECYCLED) if recycled else _SEALED
    if len(meta) + length <= INLINE:
        content = b"".join((_HEADER.pack(kind, len(views), length, _HERE), meta, *pickled))
    else:
        content = _HEADER.pack(kind, len(views), length, end)
        for piece in (meta, *pickled):
            writes.append((end, memoryview(piece)))
            end += len(piece)
    payload: FdOwner
    if named:
        payload = named_payload(end, writes, "message" if recycled else "arguments")
    else:
        payload = recycled_payload(end, writes) if recycled else sealed_payload(end, writes)
    return Parcel(content, [*owners, payload])


_NO_FRAME_BYTES = 1 << 20


class Pieces(list[bytes]):
    """A file for a pickler: the pieces that it writes, the frames of the pickle and large bytes objects themselves.

    So a bytes object of some size is copied once, into the payload.
    """

    write = list.append

    def mention(self, name: bytes) -> bool:
        """Return whether `name` is in the pickle's own frames, which are 128 kB at most."""
        return any(name in piece for piece in self if len(piece) < _NO_FRAME_BYTES)


MOST_ALONG = 1 << 20
"""No message has more descriptors or names: so many descriptors may a process have, whatever its limit (fs.nr_open)."""


def broken(detail: str) -> BrokenMessageError:
    """Return the error of a message that is none."""
    return BrokenMessageError(f"what arrived is no message of nbmp, something else wrote to its descriptor: {detail}")


NONSENSE = (struct.error, LookupError, TypeError, ValueError, OverflowError, EOFError, StopIteration, OSError)
"""What reading a message that is none may raise."""
_SHORTAGES = (errno.EMFILE, errno.ENFILE)


def told(error: BaseException) -> BaseException:
    """Return the error to raise for one of NONSENSE: of a shortage itself, since the message may be fine."""
    if isinstance(error, OSError) and error.errno == errno.ENOMEM:
        return SharedMemoryError(f"the memory of what has arrived cannot be mapped: {error.strerror}")
    if isinstance(error, OSError) and error.errno in _SHORTAGES:
        return error
    return broken(f"{type(error).__name__}: {error}")


Arrived = tuple[memoryview | bytes, list[memoryview]]


def needs(kind: int, count: int) -> int:
    """Return how many descriptors must be free to read a parcel of this kind (its first byte) with `count` of them.

    An array's segment is mapped, which takes another, and one more for a moment; a payload alone can do without.
    """
    return 1 if count == 1 and kind in _IN_RECYCLED else 2 * count + 1


def unwrap(content: bytes | memoryview, owned: list[Owned]) -> bytes:
    """Return the content of a parcel that was put `outside`."""
    try:
        _, length = _WRAPPING.unpack(content)
        payload = map_leased(owned.pop())
    except NONSENSE as error:
        raise told(error) from None
    if not 0 < length <= len(payload):
        raise broken(f"its content has {length} bytes, in a segment of {len(payload)}")
    return bytes(payload[:length])


def unpack(content: bytes | memoryview, owned: list[Any]) -> Arrived:
    """Return the pickle and its buffers; a payload is taken off the end of `owned`.

    Buffers do not refer to `content`; the pickle does.
    """
    if content[0] == WRAPPED:
        content = unwrap(content, owned)
    here = memoryview(content)
    if here[0] == PLAIN:
        return here[1:], []
    try:
        return _unpack(here, owned)
    except NONSENSE as error:
        raise told(error) from None


def _unpack(here: memoryview, owned: list[Any]) -> Arrived:
    kind, count, length, outside = _HEADER.unpack_from(here)
    start = _HEADER_SIZE + 8 * count
    if kind == _INLINE:
        whole, aligned = memoryview(bytearray(here[start + length :])), 1
    else:
        whole, aligned = _MAPS[kind](owned.pop()), _ALIGNMENT
    if outside == _HERE:
        sizes, pickled = here[_HEADER_SIZE:start], here[start : start + length]
    else:
        sizes, pickled = whole[outside:][: 8 * count], whole[outside + 8 * count :][:length]
    if len(sizes) != 8 * count or len(pickled) != length:
        raise broken(f"it speaks of {count} buffers and {length} bytes, and is shorter")
    buffers, place = [], 0
    for size in sizes.cast("q"):
        end = place + (size if size >= 0 else ~size)
        if end > len(whole):
            raise broken(f"a buffer ends at byte {end} of {len(whole)}")
        view = whole[place:end]
        buffers.append(view if size >= 0 else view.toreadonly())
        place = -(-end // aligned) * aligned
    return pickled, buffers


_MAPS: dict[int, Callable[[Any], Any]] = {_SEALED: map_private, _RECYCLED: map_leased, _NAMED: map_named}
