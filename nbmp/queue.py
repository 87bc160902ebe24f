"""Queues between processes, with `multiprocessing`'s names and meanings.

    put   pickles in the caller, so the caller gets the error and later changes are not seen by the receiver;
          sends at once while there is room, else hands over to a feeder thread, which keeps the order
    get   takes a whole message from the channel; no lock, so any number of processes may get, and die meanwhile

The producer may end right after `put`: a message that is sent needs it no longer, and what the feeder still has is sent
before a normal exit.
"""

import os
import time
from queue import Empty, Full
from typing import Any

from nbmp.channels import Channel
from nbmp.errors import BrokenMessageError, OpenFilesError, SharedMemoryError
from nbmp.feeder import Feeder
from nbmp.memory.descriptors import Owned, own
from nbmp.pickling.luggage import current_luggage
from nbmp.pickling.parcel import Held
from nbmp.pickling.quick import get_ready, to_send
from nbmp.slots import Counter, Slots
from nbmp.waiting import readable


class _Ends:
    """What every queue consists of: the two ends of a channel. Travels in arguments and in messages."""

    def __init__(self, reader: Channel | None = None, writer: Channel | None = None) -> None:
        if reader is None or writer is None:
            reader, writer = Channel.pair()
        self._reader = reader
        self._writer = writer
        self._closed = False
        get_ready()

    def empty(self) -> bool:
        """Return whether nothing is there to get at this moment."""
        return not self._reader.holds() and not readable(self._reader.fd, 0)

    def _check_open(self) -> None:
        if self._closed:
            raise ValueError(f"{type(self).__name__} is closed in this process")

    def _travelling(self, *fds: int) -> tuple[Any, ...]:
        luggage = current_luggage(self)
        return tuple(luggage.DupFd(luggage.duplicate_for_child(fd)) for fd in fds)


class SimpleQueue(_Ends):
    """A queue without a feeder: `put` waits while the channel is full.

    `multiprocessing.SimpleQueue`, whose `ctx` argument is accepted and not needed.
    """

    def __init__(self, *, ctx: object = None) -> None:
        super().__init__()

    def put(self, obj: Any) -> None:
        """Send a snapshot of `obj`; shared arrays in it stay shared. Waits while there is no room."""
        self._check_open()
        self._writer.send(to_send(obj))

    def get(self) -> Any:
        """Return the next object; waits for it."""
        self._check_open()
        return self._reader.take()

    def close(self) -> None:
        """Close it in this process."""
        self._closed = True
        self._reader.close()
        self._writer.close()

    def __reduce__(self) -> tuple[Any, ...]:
        return _arrive_simple, self._travelling(self._reader.fd, self._writer.fd)


class Queue(_Ends):
    """A queue of any number of producers and consumers; `multiprocessing.Queue`.

    Parameters
    ----------
    maxsize : int
        `put` waits while this many items are under way; 0 or less: without a bound.
    """

    def __init__(self, maxsize: int = 0, *, ctx: object = None) -> None:
        super().__init__()
        self._count = Counter()
        self._slots = Slots(maxsize) if maxsize > 0 else None
        self._feeder = Feeder(self._writer)

    def put(self, obj: Any, block: bool = True, timeout: float | None = None) -> None:
        """Put a snapshot of `obj`; shared arrays in it stay shared.

        Raises
        ------
        CannotTravelError
            When it cannot be pickled. Nothing was put.
        queue.Full
            When there was no free slot (within `timeout` seconds).
        ValueError
            When the queue is closed in this process.
        """
        if self._closed:
            self._check_open()
        parcel = to_send(obj)
        if self._slots is not None:
            slot = self._slots.take(timeout if block else 0)
            if slot is None:
                raise Full
            parcel = parcel.carrying(Held(slot))
        self._about_to_put()
        self._feeder.send(parcel)

    def get(self, block: bool = True, timeout: float | None = None) -> Any:
        """Return the next object.

        Raises
        ------
        queue.Empty
            When there was none (within `timeout` seconds).
        OpenFilesError, SharedMemoryError
            When there is no descriptor, or no memory, for the item. It can still be got then.
        BrokenMessageError
            When somebody has written something else to the queue's descriptor. The next item can be got.
        ValueError
            When the queue is closed in this process.
        Exception
            Whatever unpickling the item raises; the next item can be got.
        """
        if self._closed:
            self._check_open()
        try:
            value = self._reader.take() if block and timeout is None else self._take(timeout if block else 0)
        except (Empty, EOFError, OpenFilesError, SharedMemoryError, BrokenMessageError):
            raise  # no item was taken
        except Exception:
            self._has_taken()
            raise
        self._has_taken()
        return value

    def put_nowait(self, obj: Any) -> None:
        """As `put(obj, block=False)`."""
        self.put(obj, False)

    def get_nowait(self) -> Any:
        """As `get(block=False)`."""
        return self.get(False)

    def qsize(self) -> int:
        """Return about how many items are in it: items that a killed process had taken may be counted."""
        return self._count.value()

    def full(self) -> bool:
        """Return whether `put` would wait at this moment."""
        return self._slots is not None and self._slots.is_full()

    def close(self) -> None:
        """No more is put or got by this process; what was put is still sent."""
        self._closed = True

    def join_thread(self) -> None:
        """Wait until all that was put is sent. Only after `close`."""
        if not self._closed:
            raise ValueError("close the queue before join_thread()")
        self._feeder.join()

    def cancel_join_thread(self) -> None:
        """Do not wait at exit until all that was put is sent: it may be lost."""
        self._feeder.cancel_join()

    def _about_to_put(self) -> None:
        self._count.raise_()

    def _has_taken(self) -> None:
        self._count.lower()
        if self._slots is not None:
            self._slots.tell_freed()

    def _take(self, timeout: float | None) -> Any:
        deadline = time.monotonic() + (timeout or 0)
        while True:
            try:
                return self._reader.take(wait=False)
            except BlockingIOError:
                if not readable(self._reader.fd, max(0.0, deadline - time.monotonic())):
                    raise Empty from None

    def _fds(self) -> list[int]:
        fds = [self._reader.fd, self._writer.fd, self._count.owned.fileno()]
        return fds if self._slots is None else [*fds, self._slots.file.fileno(), self._slots.freed.fileno()]

    def __reduce__(self) -> tuple[Any, ...]:
        maxsize = 0 if self._slots is None else self._slots.count
        return _arrive, (type(self), maxsize, *self._travelling(*self._fds()))

    def _adopt(self, maxsize: int, fds: list[Owned]) -> None:
        reader, writer, count, *slots = fds
        super().__init__(_channel(reader), _channel(writer))
        self._count = Counter(count)
        self._slots = Slots(maxsize, slots[0], slots[1]) if maxsize else None
        self._feeder = Feeder(self._writer)


class JoinableQueue(Queue):
    """A queue that knows when all its items have been dealt with; `multiprocessing.JoinableQueue`."""

    def __init__(self, maxsize: int = 0, *, ctx: object = None) -> None:
        super().__init__(maxsize)
        self._unfinished = Counter()

    def task_done(self) -> None:
        """An item that was got has been dealt with; ValueError when called more often than there were items."""
        if not self._unfinished.lower():
            raise ValueError("task_done() called too many times")

    def join(self) -> None:
        """Wait until every item that was put has been dealt with."""
        pause = 0.001
        while self._unfinished.value():
            time.sleep(pause)
            pause = min(2 * pause, 0.05)

    def _about_to_put(self) -> None:
        self._unfinished.raise_()
        super()._about_to_put()

    def _fds(self) -> list[int]:
        return [self._unfinished.owned.fileno(), *super()._fds()]

    def _adopt(self, maxsize: int, fds: list[Owned]) -> None:
        self._unfinished = Counter(fds[0])
        super()._adopt(maxsize, fds[1:])


def _channel(owned: Owned) -> Channel:
    return Channel.of_fd(os.dup(owned.fileno()))


def _arrive_simple(reader: Any, writer: Any) -> SimpleQueue:
    queue = SimpleQueue.__new__(SimpleQueue)
    _Ends.__init__(queue, Channel.of_fd(reader.detach()), Channel.of_fd(writer.detach()))
    return queue


def _arrive(kind: type[Queue], maxsize: int, *fds: Any) -> Queue:
    queue = kind.__new__(kind)
    queue._adopt(maxsize, [own(fd.detach()) for fd in fds])
    return queue
