"""The payload of a parcel: the segment with its large part, written by the sender and mapped by the receiver.

A payload is of one of three kinds. *Recycled*: one receiver, which maps it shared and holds a lease; when the lease
ends the sender uses the segment again, so that in the long run a message costs one copy into memory that is mapped
already. *Sealed*: any number of receivers, which map it copy-on-write: sent to N ranks it costs its size once, and each
rank may write to its own. *Named*: under the sharing strategy `file_system`, in place of recycled: one receiver, which
maps it shared and has it for itself; nothing is used again there. What is sealed has a name there too.
"""

import mmap
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from nbmp import platforms
from nbmp.errors import OpenFilesError, SharedMemoryError
from nbmp.memory.descriptors import Owned
from nbmp.memory.janitor import look_after
from nbmp.memory.mappings import kept_mapping
from nbmp.memory.recycler import recycler
from nbmp.memory.room import is_scarce
from nbmp.memory.segment import Segment

if TYPE_CHECKING:
    from nbmp.memory.named import NamedSegment


class Lent:
    """A payload in a recycled segment. While it waits to be sent it can do without a descriptor."""

    __slots__ = ("_lease", "_stored")

    def __init__(self, lease: Owned | None, stored: bytearray | None = None) -> None:
        self._lease = lease
        self._stored = stored

    @property
    def fd(self) -> int:
        """The lease; for a payload that was put away a new one, in a segment that is filled now."""
        if self._lease is None:
            assert self._stored is not None
            self._lease = _filled(len(self._stored), [(0, memoryview(self._stored))])
            self._stored = None
        return self._lease.fileno()

    def put_away(self) -> None:
        """Keep the payload in ordinary memory if descriptors are scarce."""
        lease = self._lease
        if lease is not None and is_scarce(lease.fileno()):
            self._stored = content_of(lease.fileno())
            self._lease = None


def recycled_payload(size: int, writes: Sequence[tuple[int, memoryview]]) -> Lent:
    """Return a payload of these buffers at these offsets, which is used again when its receiver has dropped it."""
    try:
        return Lent(_filled(size, writes))
    except OpenFilesError:
        stored = bytearray(size)
        _copy(stored, writes)
        return Lent(None, stored)


def _filled(size: int, writes: Sequence[tuple[int, memoryview]]) -> Owned:
    segment = recycler.take(size)
    if segment.is_fresh:
        _write(segment.fd, writes)
        segment.is_fresh = False
    else:
        try:
            _copy(kept_mapping(segment.key, segment.size, segment.fd), writes)
        except SharedMemoryError:  # there is no more room for mappings
            _write(segment.fd, writes)
    lease = segment.lend()
    recycler.put_back(segment)
    look_after()
    return lease


def _copy(target: Any, writes: Sequence[tuple[int, memoryview]]) -> None:
    whole = memoryview(target)
    for offset, view in writes:
        whole[offset : offset + view.nbytes] = view


def content_of(fd: int) -> bytearray:
    content = bytearray(os.fstat(fd).st_size)
    done = 0
    while done < len(content):  # one preadv moves 2 GiB at most
        done += os.preadv(fd, [memoryview(content)[done:]], done)
    return content


def sealed_payload(size: int, writes: Sequence[tuple[int, memoryview]]) -> Segment:
    segment = Segment.create(size, "arguments", sealed=False)
    _write(segment.fd, writes)
    platforms.seal(segment.fd, contents=True)
    return segment


def named_payload(size: int, writes: Sequence[tuple[int, memoryview]], purpose: str) -> "NamedSegment":
    from nbmp.memory.named import NamedSegment

    segment = NamedSegment.create(size, purpose)
    _write(segment.fileno(), writes)
    return segment


def _write(fd: int, writes: Sequence[tuple[int, memoryview]]) -> None:
    """Into fresh memory: twice as fast as a copy into a new mapping of it."""
    for offset, view in writes:
        done = 0
        while done < view.nbytes:  # one pwrite moves 2 GiB at most
            done += os.pwrite(fd, view[done:], offset + done)


def map_private(payload: Any) -> memoryview:
    size = os.fstat(payload.fileno()).st_size
    return memoryview(mmap.mmap(payload.fileno(), size, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_WRITE))


def map_leased(payload: Owned) -> Any:
    from nbmp.memory.arrays import leased_bytes

    return leased_bytes(payload)


def map_named(payload: Any) -> Any:
    from nbmp.memory.arrays import named_bytes

    if isinstance(payload, Owned):
        raise TypeError("its payload has no name")
    return named_bytes(payload)
