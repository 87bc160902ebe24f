"""A pipe: two connected ends that send and receive objects, with `multiprocessing.Pipe`'s names and meanings."""

import socket
from types import TracebackType
from typing import Any

from nbmp.channels import Channel
from nbmp.pickling.arriving import OwnedFd, TravellingFd
from nbmp.pickling.luggage import current_luggage
from nbmp.pickling.parcel import pack
from nbmp.pickling.quick import get_ready, to_send
from nbmp.waiting import readable

_OBJECT, _BYTES = 0, 1


class Connection:
    """One end of a pipe; `multiprocessing.connection.Connection`. Works with `multiprocessing.connection.wait`."""

    def __init__(self, channel: Channel, *, readable: bool = True, writable: bool = True) -> None:
        self._channel: Channel | None = channel
        self._readable = readable
        self._writable = writable
        get_ready()

    @property
    def closed(self) -> bool:
        return self._channel is None

    @property
    def readable(self) -> bool:
        return self._readable

    @property
    def writable(self) -> bool:
        return self._writable

    def fileno(self) -> int:
        """Return the descriptor, which becomes readable when there is something to receive."""
        return self._open().fd

    def close(self) -> None:
        """Close this end; the other end gets EOFError when it has received what was sent."""
        if self._channel is not None:
            self._channel.close()
            self._channel = None

    def send(self, obj: Any) -> None:
        """Send a snapshot of `obj`; shared arrays in it stay shared. Waits while there is no room.

        Raises
        ------
        CannotTravelError
            When it cannot be pickled.
        BrokenPipeError, ConnectionResetError
            When the other end is closed.
        """
        self._writing().send(to_send(obj), _OBJECT)

    def recv(self) -> Any:
        """Return the next object; waits for it. EOFError when the other end is closed and nothing is left."""
        return self._reading().take()

    def poll(self, timeout: float | None = 0.0) -> bool:
        """Return whether there is something to receive within `timeout` seconds (None: waits without a bound)."""
        return self._reading().holds() or readable(self._reading().fd, timeout)

    def send_bytes(self, buf: Any, offset: int = 0, size: int | None = None) -> None:
        """Send a piece of a bytes-like object as one message."""
        view = memoryview(buf).cast("B")
        if offset < 0 or offset > view.nbytes:
            raise ValueError(f"offset {offset} is not inside a buffer of {view.nbytes} bytes")
        if size is not None and (size < 0 or offset + size > view.nbytes):
            raise ValueError(f"size {size} at offset {offset} goes beyond a buffer of {view.nbytes} bytes")
        view = view[offset:] if size is None else view[offset : offset + size]
        self._writing().send(pack((bytes(view),), (), (), recycled=True), _BYTES)

    def recv_bytes(self, maxlength: int | None = None) -> bytes:
        """Return the next message of `send_bytes`; OSError when it is longer than `maxlength`."""
        message = self._reading().receive()
        if message is None:
            raise EOFError
        data = bytes(message.bytes())
        if maxlength is not None and len(data) > maxlength:
            raise OSError(f"a message of {len(data)} bytes is longer than the {maxlength} allowed")
        return data

    def recv_bytes_into(self, buf: Any, offset: int = 0) -> int:
        """Receive a message of `send_bytes` into a buffer; return its length. BufferTooShort when it does not fit."""
        from multiprocessing import BufferTooShort

        view = memoryview(buf).cast("B")
        data = self.recv_bytes()
        if offset < 0 or offset + len(data) > view.nbytes:
            raise BufferTooShort(data)
        view[offset : offset + len(data)] = data
        return len(data)

    def __enter__(self) -> "Connection":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __reduce__(self) -> tuple[Any, ...]:
        index = current_luggage(self).duplicate_for_child(self._open().fd)
        return _arrive, (TravellingFd(index), self._readable, self._writable)

    def _open(self) -> Channel:
        if self._channel is None:
            raise OSError("handle is closed")
        return self._channel

    def _reading(self) -> Channel:
        if not self._readable:
            raise OSError("connection is write-only")
        return self._open()

    def _writing(self) -> Channel:
        if not self._writable:
            raise OSError("connection is read-only")
        return self._open()


def Pipe(duplex: bool = True) -> tuple[Connection, Connection]:  # multiprocessing's name
    """Return two connected ends; without `duplex` the first only receives and the second only sends."""
    first, second = Channel.pair()
    if duplex:
        return Connection(first), Connection(second)
    first.shutdown(socket.SHUT_WR)
    second.shutdown(socket.SHUT_RD)
    return Connection(first, writable=False), Connection(second, readable=False)


def _arrive(fd: OwnedFd, readable: bool, writable: bool) -> Connection:
    return Connection(Channel.of_fd(fd.detach()), readable=readable, writable=writable)
