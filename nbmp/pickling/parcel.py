"""A parcel: one pickled object, ready to be sent, with the descriptors that travel along.

    parcel.content   bytes: which buffers lie where in the payload, and the pickle
    parcel.fds       descriptors of the shared arrays' segments and of whatever else asked to travel
    payload          a sealed memory file with the large private buffers, and with the content when that is large; it is
                     the last of `fds`. Every receiver maps it copy-on-write: sent to N ranks it costs its size once,
                     and each may write to its own.

Who frees what: the sender's descriptors end with the `Parcel`; a receiver owns what arrived.
"""

import mmap
import os
import pickle
from collections.abc import Sequence
from typing import Any, NamedTuple

from nbmp import platforms
from nbmp.memory.segment import Segment

INLINE = 64 * 1024
"""Bytes up to which things travel in the message itself (measured: a memory file wins above about 100 kB)."""

ALIGNMENT = 64


class Span(NamedTuple):
    """Where a buffer lies in the payload."""

    offset: int
    size: int
    readonly: bool


class Parcel:
    """A pickled object on its way. Keeps what it refers to alive; can be sent any number of times."""

    def __init__(self, content: bytes, payload: Segment | None, content_span: Span | None, keep: Sequence[Any]) -> None:
        self.content = content
        self.content_span = content_span
        self.has_payload = payload is not None
        self._keep = [*keep, payload] if payload is not None else list(keep)

    @property
    def fds(self) -> list[int]:
        """The descriptors that travel along, in order, the payload's last."""
        return [kept.fd for kept in self._keep]


class OwnedFd:
    """A descriptor that is closed with its owner."""

    def __init__(self, fd: int) -> None:
        self._owner = platforms.owner(fd)

    @property
    def fd(self) -> int:
        return self._owner.fileno()

    def detach(self) -> int:
        """Give a duplicate of the descriptor away, which whoever called closes; this one is closed."""
        fd = os.dup(self.fd)
        self._owner.close()
        return fd


def pack(pickled: bytes, buffers: Sequence[pickle.PickleBuffer], keep: Sequence[Any]) -> Parcel:
    """Return a parcel of a pickle, its out-of-band buffers (copied once, here) and the owners of its descriptors."""
    views = [buffer.raw() for buffer in buffers]
    spans, size = [], 0
    for view in views:
        spans.append(Span(size, view.nbytes, view.readonly))
        size += -(-view.nbytes // ALIGNMENT) * ALIGNMENT
    content = pickle.dumps((tuple(tuple(span) for span in spans), pickled), protocol=5)
    outside = Span(size, len(content), True) if len(content) > INLINE else None
    if not views and outside is None:
        return Parcel(content, None, None, keep)
    writes: list[tuple[int, Any]] = [(span.offset, view) for span, view in zip(spans, views, strict=True)]
    if outside is not None:
        writes.append((size, memoryview(content)))
        content, size = b"", size + outside.size
    return Parcel(content, _payload(size, writes), outside, keep)


def _payload(size: int, writes: Sequence[tuple[int, Any]]) -> Segment:
    segment = Segment.create(size, sealed=False)
    for offset, view in writes:
        done = 0
        while done < view.nbytes:  # one pwrite moves 2 GiB at most
            done += os.pwrite(segment.fd, view[done:], offset + done)
    platforms.seal(segment.fd, contents=True)
    return segment


def unpack(
    content: bytes, content_span: Span | None, payload: int | None
) -> tuple[memoryview | bytes, list[memoryview]]:
    """Return the pickle and its buffers; `payload` is a descriptor that stays the caller's."""
    whole = memoryview(b"")
    if payload is not None:
        whole = _private_map(payload)
    if content_span is not None:
        content = bytes(whole[content_span.offset : content_span.offset + content_span.size])
    spans, pickled = pickle.loads(content)
    buffers = []
    for offset, size, readonly in spans:
        view = whole[offset : offset + size]
        buffers.append(view.toreadonly() if readonly else view)
    return pickled, buffers


def _private_map(fd: int) -> memoryview:
    size = os.fstat(fd).st_size
    return memoryview(mmap.mmap(fd, size, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_WRITE))
