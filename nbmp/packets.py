"""Packets of a channel: how they begin, what comes with them, and the buffers that they are received into.

kind, count                        as many descriptors come along
kind, BUNDLED                      more than a packet may carry: one end of a socket pair that has them
kind, NAMES_ALONG, count or BUNDLED, ...
                                   segments travel by name as well; see `nbmp.pickling.names`
"""

import socket
from typing import Any

from nbmp.ancillary import unbundle
from nbmp.pickling.parcel import INLINE, broken, needs

PACKET = INLINE + 16 * 1024
"""Largest packet: inline content, its header and the sizes of its buffers."""
SPARE_BUFFERS = 4
SMALL_PACKET = 64
"""Bytes that fit into a packet whatever the system's limits are."""
BUNDLED = 0xFF
"""In place of the number of descriptors: they are in a socket pair."""
NAMES_ALONG = 0xFE
"""Likewise: segments travel by name; the numbers of descriptors and of names come next."""
PEEKED = 3 + 4
"""Bytes that tell how many descriptors there must be room for."""
HEAD_BYTES = 2
_TRUNCATED = int(socket.MSG_TRUNC)
HEADS = tuple(bytes((kind, 0)) for kind in range(256))
"""First bytes of a packet without descriptors."""

Received = tuple[tuple[int, list[Any], int, Any], list[Any], memoryview]
"""What `recvmsg_into` returned; what came along: the descriptors once they are owned, then named segments; the buffer
that it received into."""

_buffers: list[memoryview] = []
"""Buffers for a packet that nobody uses at the moment: to make one costs more than the system call."""


def check(packet: memoryview, size: int, flags: int, came: int) -> None:
    """Raise BrokenMessageError for a packet that does not begin as ours do, or has other descriptors than it says."""
    if flags & _TRUNCATED:
        raise broken(f"it is longer than {PACKET} bytes")
    if size <= HEAD_BYTES + (packet[1] == NAMES_ALONG):
        raise broken(f"it has {size} bytes")
    said = packet[2] if packet[1] == NAMES_ALONG else packet[1]
    if came != (1 if said == BUNDLED else said):
        raise broken(f"it says that {said} descriptors come with it, and {came} do")


def descriptors_of(head: bytes) -> int:
    """Return how many descriptors must be free to receive a packet that begins like this, and read it."""
    if len(head) < PEEKED:
        return 0 if head[1] in (BUNDLED, NAMES_ALONG) or len(head) <= HEAD_BYTES else needs(head[2], head[1])
    if head[1] == BUNDLED:
        return 1
    if head[1] != NAMES_ALONG:
        return needs(head[2], head[1])
    from nbmp.pickling.names import needed

    return needed(1 if head[2] == BUNDLED else head[2], int.from_bytes(head[3:], "little"))


def with_names(packet: memoryview, bundled: bool, owned: list[Any]) -> tuple[memoryview, list[Any]]:
    """Return the content of a packet with names, and the descriptors and named segments that came along."""
    from nbmp.pickling.names import arrive

    if bundled:
        unbundle(owned)
    start, along = arrive(packet, owned, int(bundled))
    return packet[start:], along


def take_buffer() -> memoryview:
    """Return a buffer that nobody uses, which `give_back` takes afterwards."""
    try:
        return _buffers.pop()
    except IndexError:
        return memoryview(bytearray(PACKET))


def give_back(buffer: memoryview) -> None:
    """Keep a buffer for the next packet."""
    if len(_buffers) < SPARE_BUFFERS:
        _buffers.append(buffer)
