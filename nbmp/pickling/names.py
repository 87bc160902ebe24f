"""What travels by name in a packet: named segments, each under a name that is made for this one message.

    packet        kind, 254, number of descriptors (255: bundled), _HEAD, block, content
    descriptors   one of each session, its "flight"; the others in order; the block, if it is too long for the packet
    block         the sessions, then for each name its place among all that travels along, its session and itself

The names for the message stay as long as its flight is open somewhere: here, in a socket, at the receiver
(`nbmp.memory.manager`).
"""

import contextlib
import os
import struct
import sys
from collections.abc import Sequence
from typing import Any

from nbmp import platforms
from nbmp.memory.descriptors import Owned, made
from nbmp.memory.manager import message_name
from nbmp.memory.named import NamedSegment
from nbmp.memory.session import Session, join
from nbmp.memory.strategy import NAMED
from nbmp.pickling.parcel import MOST_ALONG, NONSENSE, FdOwner, Held, broken, told

_HEAD = struct.Struct("<III")  # names, sessions, length of the block (0: in the last descriptor)
_SESSION = struct.Struct("<32sQ")  # name, place of the flight
_NAME = struct.Struct("<II48s")  # place among all that travels along, session, name
_MAPPED = ("array", "arrays")
"""Purposes, in their names, of segments that are mapped as they arrive, so that they do not all need a descriptor."""


class Leaving:
    """What has names for one message. They are of no use, and removed, when the message is not sent after all.

    Parameters
    ----------
    most : int
        Bytes that there are room for in the packet.
    """

    def __init__(self, owners: Sequence[FdOwner], most: int) -> None:
        self._names: list[tuple[Session, str]] = []
        self._flights: dict[Session, tuple[int, Owned, int]] = {}
        entries = [self._link(index, owner) for index, owner in enumerate(owners) if isinstance(owner, NamedSegment)]
        sessions = [_SESSION.pack(session.name.encode(), place) for session, (_, _, place) in self._flights.items()]
        block = b"".join((*sessions, *entries))
        self._kept: list[FdOwner] = [Held(flight) for _, flight, _ in self._flights.values()]
        self._kept += [owner for owner in owners if owner.fd != NAMED]
        inside = len(block) <= most
        if not inside:
            self._kept.append(Held(_file_of(block)))
        head = _HEAD.pack(len(entries), len(sessions), len(block) if inside else 0)
        self.block = head + block if inside else head

    @property
    def fds(self) -> list[int]:
        return [owner.fd for owner in self._kept]

    def undo(self) -> None:
        """Remove the names: nothing was sent."""
        for session, name in self._names:
            with contextlib.suppress(OSError):
                session.unlink(name)

    def _link(self, index: int, segment: NamedSegment) -> bytes:
        session = segment.session
        flight = self._flights.get(session)
        if flight is None:
            flight = self._flights[session] = (len(self._flights), *session.begin_flight())
        self._names.append((session, segment.link(flight[2])))
        return _NAME.pack(index, flight[0], segment.name.encode())


def needed(count: int, names: int) -> int:
    """Return how many descriptors a message of `count` and so many names takes."""
    if names > MOST_ALONG:  # no message: reading it says so
        return count
    return count + (2 if sys.version_info >= (3, 13) else names + 1)


def arrive(packet: memoryview, owned: list[Any], first: int) -> tuple[int, list[Any]]:
    """Return where the content begins in a packet, which begins with the head, and all that travels along, in order.

    Parameters
    ----------
    owned, first
        The descriptors begin at `first`; named segments are put in there behind them as they arrive: an attempt that
        was interrupted goes on where it was.

    Raises
    ------
    MissingSegmentError
        When a file or a whole session is not there.
    BrokenMessageError
        When the head or the block makes no sense.
    """
    try:
        return _arrive(packet, owned, first)
    except NONSENSE as error:
        raise told(error) from None


def _arrive(packet: memoryview, owned: list[Any], first: int) -> tuple[int, list[Any]]:
    count, sessions, length = _HEAD.unpack_from(packet)
    fds = [one for one in owned[first:] if type(one) is Owned]
    arrived = len(owned) - first - len(fds)
    expected = sessions * _SESSION.size + count * _NAME.size
    if count > MOST_ALONG or sessions > min(count, len(fds)) or length not in (0, expected):
        raise broken(f"it speaks of {count} names in {sessions} sessions, in {length} bytes")
    block = packet[_HEAD.size : _HEAD.size + length] if length else memoryview(_content_of(fds[-1], expected))
    if len(block) != expected:
        raise broken(f"its names take {expected} bytes, and there are {len(block)}")
    start = sessions * _SESSION.size
    joined = [(join(_text(name)), place) for name, place in _SESSION.iter_unpack(block[:start])]
    by_name = {}
    for number, (index, which, name) in enumerate(_NAME.iter_unpack(block[start:])):
        if number >= arrived:
            session, place = joined[which]
            segment = NamedSegment.arrive(session, _text(name), fds[which])
            owned.append(segment)
            if segment.flight is None:
                session.unlink(message_name(segment.name, place))  # after an interrupt it is left to the manager
        by_name[index] = segment = owned[first + len(fds) + number]
        if segment.name.split("-")[1] in _MAPPED:
            segment.map  # noqa: B018
    others = iter(fds[sessions:])
    total = count + len(fds) - sessions - (not length)
    return _HEAD.size + length, [by_name[index] if index in by_name else next(others) for index in range(total)]


def _text(field: bytes) -> str:
    return field.rstrip(b"\0").decode()


def _file_of(block: bytes) -> Owned:
    file = made(platforms.anonymous_file, "nbmp-names")
    os.write(file.fileno(), block)
    return file


def _content_of(file: Owned, length: int) -> bytes:
    return os.pread(file.fileno(), length, 0)
