"""The control channel between the launching process and one rank.

    launching process                                   rank
      SETUP, TASK (not under fork: inherited)   ──>
                                                <──     SHOWN any number of times
      SEEN, once for each SHOWN                 ──>
                                                <──     RETURNED, RAISED or EXITED once

A `SOCK_SEQPACKET` socket pair: a message is one packet, sent and received whole or not at all, with its descriptors.
Content that does not fit a packet travels in the parcel's payload; descriptors beyond what a packet may carry go
ahead in packets of their own.
"""

import array
import pickle
import socket
from collections.abc import Sequence
from typing import Any, NamedTuple

from nbmp.pickling.arriving import loads
from nbmp.pickling.parcel import Parcel, Span, pack

SETUP, TASK, RETURNED, RAISED, EXITED, SHOWN, SEEN = range(1, 8)
_MORE_FDS = 0

PACKET = 80 * 1024
"""Largest packet: inline content (64 kB) and its header."""
FDS_PER_PACKET = 250  # the kernel's limit is 253 (SCM_MAX_FD)


class Message(NamedTuple):
    """A message that has arrived and is still pickled: reading it may run the user's code."""

    kind: int
    content: bytes
    content_span: tuple[int, int, bool] | None
    has_payload: bool
    fds: list[int]

    def read(self) -> Any:
        """Return the object; the message's descriptors are used up."""
        span = None if self.content_span is None else Span(*self.content_span)
        return loads(self.content, span, self.has_payload, self.fds)


class Channel:
    """One end. Not thread-safe; each end has one user."""

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock
        self._early_fds: list[int] = []

    @classmethod
    def pair(cls) -> tuple["Channel", "Channel"]:
        """Return two connected ends."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        return cls(ours), cls(theirs)

    @classmethod
    def of_fd(cls, fd: int) -> "Channel":
        """Take over an inherited descriptor."""
        return cls(socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET, 0, fd))

    def fileno(self) -> int:
        return self._socket.fileno()

    def send(self, kind: int, parcel: Parcel) -> None:
        """Send; waits while the other side has not made room. OSError when it is gone."""
        fds = parcel.fds
        while len(fds) > FDS_PER_PACKET:
            self._send((_MORE_FDS,), fds[:FDS_PER_PACKET])
            fds = fds[FDS_PER_PACKET:]
        span = None if parcel.content_span is None else tuple(parcel.content_span)
        self._send((kind, parcel.content, span, parcel.has_payload), fds)

    def send_plain(self, kind: int, obj: Any, keep: Sequence[Any] = ()) -> None:
        """Send an object of nbmp's own, pickled by name; `keep` are owners of descriptors to go along."""
        self.send(kind, pack(pickle.dumps(obj, protocol=5), (), keep))

    def receive(self, *, wait: bool = True) -> Message | None:
        """Return the next message; None when the other side is gone, BlockingIOError when nothing is there now."""
        while True:
            flags = socket.MSG_CMSG_CLOEXEC | (0 if wait else socket.MSG_DONTWAIT)
            try:
                data, ancillary, got, _ = self._socket.recvmsg(
                    PACKET, socket.CMSG_SPACE(4 * (FDS_PER_PACKET + 3)), flags
                )
            except ConnectionResetError:
                return None
            fds = array.array("i")
            for level, what, block in ancillary:
                if level == socket.SOL_SOCKET and what == socket.SCM_RIGHTS:
                    fds.frombytes(block)
            self._early_fds += fds
            if not data:
                return None
            if got & (socket.MSG_CTRUNC | socket.MSG_TRUNC):
                raise OSError("descriptors of a message were lost: the limit of open files (ulimit -n) is reached")
            head = pickle.loads(data)
            if head[0] != _MORE_FDS:
                kind, content, span, has_payload = head
                fds_of_message, self._early_fds = self._early_fds, []
                return Message(kind, content, span, has_payload, fds_of_message)

    def close(self) -> None:
        self._socket.close()

    def _send(self, packet: tuple[Any, ...], fds: Sequence[int]) -> None:
        ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
        self._socket.sendmsg([pickle.dumps(packet, protocol=5)], ancillary, socket.MSG_NOSIGNAL)
