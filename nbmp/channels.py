"""A channel: whole messages with their descriptors, between two or more processes.

    sender                                    receiver
      dumps(obj) -> Parcel                      one of those that wait gets the message
      send ── one packet, descriptors along ──> receive -> Message.read() -> obj

A `SOCK_SEQPACKET` socket pair: a message is one packet, sent and received whole or not at all. So no lock is needed,
and a process that is killed while it sends or receives can neither damage a message nor block the others. What does
not fit a packet travels in the parcel's payload. More descriptors than a packet may carry go into a socket pair of
their own first, one end of which is what the message carries. Segments that travel by name are a part of the packet of
their own (`nbmp.pickling.names`).

A receiver makes sure that it has room for a message's descriptors before it takes the message: otherwise the kernel
delivers the message without them, and it would be lost.
"""

import array
import contextlib
import errno
import os
import socket
import threading
import time
from _thread import get_ident
from collections import deque
from collections.abc import Sequence
from typing import Any

from nbmp.ancillary import (
    ANCILLARY,
    CUT,
    CUT_SHORT,
    FDS_PER_PACKET,
    PEEK,
    RECEIVE,
    RIGHTS,
    bundle,
    numbers,
    unbundle,
)
from nbmp.errors import BrokenMessageError, MissingSegmentError, OpenFilesError, SharedMemoryError
from nbmp.memory.descriptors import own_all
from nbmp.memory.room import make_room, raise_limit
from nbmp.memory.strategy import NAMED
from nbmp.messages import Message, Unreadable
from nbmp.packets import (
    BUNDLED,
    HEAD_BYTES,
    HEADS,
    NAMES_ALONG,
    PACKET,
    PEEKED,
    SMALL_PACKET,
    Received,
    check,
    descriptors_of,
    give_back,
    take_buffer,
    with_names,
)
from nbmp.pickling.arriving import loads
from nbmp.pickling.parcel import Parcel

ROOM = 4 << 20
"""Bytes asked for as a channel's buffer, so that a sender seldom waits."""
PATIENCE = 30.0
"""Seconds to wait while too many descriptors are under way."""
LOOK_SECONDS = 0.001
"""Between two attempts then."""
_TOO_MANY = (
    "Too many descriptors of this user are under way, in messages that nobody has received yet; receive some of them, "
    "or raise the limit (ulimit -n, RLIMIT_NOFILE)"
)
# As plain numbers: an operation on the enumeration's members costs as much as a system call.
_NOW = int(socket.MSG_DONTWAIT)
_SEND = int(socket.MSG_NOSIGNAL)
_SEND_NOW = _SEND | _NOW
_PEEK_NOW = PEEK | _NOW
_RECEIVE_NOW = RECEIVE | _NOW
_WITHOUT_RIGHTS = int(socket.MSG_CTRUNC)


class Channel:
    """One end. Any number of processes and threads may send and receive."""

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock
        self._interrupted: list[Received] = []
        """Of the main thread: a message that was received when an interrupt came."""
        self._again: deque[Received] = deque()
        """Messages that were received and could not be read for lack of descriptors or memory."""

    @classmethod
    def pair(cls) -> tuple["Channel", "Channel"]:
        """Return two connected ends."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        for sock in (ours, theirs):
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, ROOM)  # as much of it as the system allows
        return cls(ours), cls(theirs)

    @classmethod
    def of_fd(cls, fd: int) -> "Channel":
        """Take over a descriptor."""
        return cls(socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET, 0, fd))

    def fileno(self) -> int:
        return self._socket.fileno()

    @property
    def fd(self) -> int:
        return self._socket.fileno()

    def close(self) -> None:
        self._socket.close()

    def __del__(self) -> None:
        self._socket.close()  # without a word: an end is given up by dropping it

    def shutdown(self, how: int) -> None:
        """Give up one direction, for everybody who holds this end."""
        self._socket.shutdown(how)

    def send(self, parcel: Parcel, kind: int = 0, *, wait: bool = True, patience: float = PATIENCE) -> None:
        """Send a parcel; `kind` (0 to 255) arrives with it.

        Raises
        ------
        BlockingIOError
            Without `wait`, when there is no room.
        OSError
            ETOOMANYREFS when this user has too many descriptors under way: at once without `wait`, else after
            `patience` seconds. OpenFilesError when there is no descriptor left to send it with.
        BrokenPipeError, ConnectionResetError
            When nobody can receive any more.
        """
        flags = _SEND if wait else _SEND_NOW
        give_up_at = 0.0
        while True:
            try:
                return self._send(parcel, kind, flags)
            except OSError as error:
                if error.errno == errno.EMSGSIZE and len(parcel.settled().content) > SMALL_PACKET:
                    parcel = parcel.outside()
                    continue
                if error.errno != errno.ETOOMANYREFS or not (wait and patience):
                    raise
                now = time.monotonic()
                give_up_at = give_up_at or now + patience
                if not raise_limit() and now > give_up_at:
                    raise OSError(errno.ETOOMANYREFS, _TOO_MANY) from None
            time.sleep(LOOK_SECONDS)

    def _send(self, parcel: Parcel, kind: int, flags: int) -> None:
        owners = parcel.owners
        if not owners:
            self._socket.sendmsg((HEADS[kind], parcel.content, *parcel.tail), (), flags)
            return
        fds = [owner.fd for owner in owners]
        if NAMED in fds:
            self._send_named(parcel.settled(), kind, flags)
        elif len(fds) <= FDS_PER_PACKET:
            head = bytes((kind, len(fds)))
            self._socket.sendmsg((head, parcel.content, *parcel.tail), ((*RIGHTS, array.array("i", fds)),), flags)
        else:
            self._send_along((kind,), (parcel.content, *parcel.tail), fds, flags)

    def _send_named(self, parcel: Parcel, kind: int, flags: int) -> None:
        from nbmp.pickling.names import Leaving

        size = len(parcel.content)
        leaving = Leaving(parcel.owners, PACKET - SMALL_PACKET - size if size > SMALL_PACKET else 0)
        try:
            self._send_along((kind, NAMES_ALONG), (leaving.block, parcel.content), leaving.fds, flags)
        except OSError:  # not for an interrupt, which may come after it was sent
            leaving.undo()
            raise

    def _send_along(
        self, head: Sequence[int], parts: Sequence[bytes | memoryview], fds: Sequence[int], flags: int
    ) -> None:
        with contextlib.ExitStack() as stack:
            count = len(fds)
            if count > FDS_PER_PACKET:
                fds, count = [stack.enter_context(bundle(fds)).fileno()], BUNDLED
            self._socket.sendmsg((bytes((*head, count)), *parts), ((*RIGHTS, array.array("i", fds)),), flags)

    def receive(self, *, wait: bool = True) -> Message | None:
        """Take the next message; None when nobody can send any more.

        Raises
        ------
        BlockingIOError
            Without `wait`, when nothing is there.
        OSError
            EMFILE when there is no room for the message's descriptors; it is still there then.
        """
        box: list[Received] = []
        try:
            self._receive(box, wait)
            content, along = self._opened(box)
        except EOFError:
            return None
        except (MissingSegmentError, BrokenMessageError) as error:
            return Unreadable(box[0][2][0], error)
        except OpenFilesError:
            self._again.extend(box)
            raise
        buffer = box[0][2]
        message = Message(buffer[0], bytes(content), along)
        give_back(buffer)
        return message

    def take(self, *, wait: bool = True) -> Any:
        """Take the next message and return its object; EOFError when nobody can send any more. Otherwise as `receive`.

        A KeyboardInterrupt loses nothing: what was received and not returned is returned by the next call. Likewise
        when there is no descriptor or no memory for it (OpenFilesError, SharedMemoryError).
        """
        box = self._interrupted if get_ident() == _main_thread else []
        if not box:
            self._receive(box, wait)
        try:
            value = loads(*self._opened(box))
        except (OpenFilesError, SharedMemoryError):
            self._again.append(box.pop())
            raise
        except Exception:
            box.clear()
            raise
        buffer = box.pop()[2]  # before somebody else gets it
        give_back(buffer)
        return value

    def _receive(self, box: "list[Received]", wait: bool) -> None:
        """Receive into `box`; EOFError when nobody can send any more."""
        if self._again and self._take_again(box):
            return
        sock = self._socket
        try:
            head = sock.recv(PEEKED, PEEK if wait else _PEEK_NOW)
            if not head:
                raise EOFError
            if len(head) > 1 and head[1]:
                self._make_room(head)
            buffer = take_buffer()
            # one call into C: what was received is in the box, whatever comes next
            received = map(sock.recvmsg_into, ((buffer,),), (ANCILLARY,), (RECEIVE if wait else _RECEIVE_NOW,))
            box.extend(zip(received, map(list, ((),)), (buffer,)))  # noqa: B905  # one of each
        except ConnectionResetError:
            raise EOFError from None

    def _make_room(self, head: bytes) -> None:
        """See to it that the descriptors of a packet that begins like this can be received."""
        try:
            make_room(descriptors_of(head), self.fd)
        except OpenFilesError:
            with contextlib.suppress(BlockingIOError):  # somebody else has it
                *_, flags, _ = self._socket.recvmsg(1, 0, _PEEK_NOW)
                if flags & _WITHOUT_RIGHTS:  # else nothing comes along: no message, and it must not stay for ever
                    raise

    def _opened(self, box: "list[Received]") -> tuple[memoryview, list[Any]]:
        """Return the content of a message and what came along, to be used up; it stays for a second attempt.

        Raises
        ------
        EOFError
            When nothing was received: nobody can send any more.
        BrokenMessageError
            When it is no message.
        """
        (size, rights, flags, _), owned, packet = box[0]
        if not (rights or flags & CUT or size <= HEAD_BYTES or packet[1]):  # most messages bring nothing along
            return packet[2:size], []
        if rights and not owned:
            own_all(numbers(rights), owned)
        if not size:
            raise EOFError
        if flags & _WITHOUT_RIGHTS:
            raise OSError(CUT_SHORT)
        check(packet, size, flags, len(numbers(rights)))
        if packet[1] == NAMES_ALONG:
            return with_names(packet[3:size], packet[2] == BUNDLED, owned)
        if packet[1] == BUNDLED:
            unbundle(owned)
            return packet[2:size], owned[1:]
        return packet[2:size], owned.copy()

    def holds(self) -> bool:
        """Return whether a message was received already that the next `take` of this thread returns."""
        interrupted = self._interrupted and threading.current_thread() is threading.main_thread()
        return bool(self._again or interrupted)

    def _take_again(self, box: "list[Received]") -> bool:
        with contextlib.suppress(IndexError):  # another thread has it
            box.append(self._again.popleft())
        return bool(box)


_main_thread = threading.main_thread().ident


def _after_fork() -> None:
    global _main_thread
    _main_thread = get_ident()


os.register_at_fork(after_in_child=_after_fork)
