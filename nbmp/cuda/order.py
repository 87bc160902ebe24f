"""The order of work on GPUs across processes: who receives an array waits for what its sender had asked for by then.

    put   an event is recorded on the caller's current stream, and travels along unless it is done at once
    get   the current stream of whoever receives waits for it: on the GPU; Python goes on

That the stream is idle is not enough: an event on CUDA's default stream also comes after what was asked of other
streams (of those that are not `non_blocking`). And it is recorded again with each array of a message: what is pickled
may ask for more work in between.

The event must live until the receiver has opened it, and must not be recorded anew before: that would have the
receiver wait for later work, which may be waiting for the receiver. So it is lent as memory is, by a lease that travels
along. It is used again, or destroyed, when that has ended and the event is done: until then the receiver's stream may
be waiting for it. In the long run no event and no lease file are made.

Drivers have a limited number of such events, some ten thousand. Where there is none to be had, or very many are under
way, `put` waits until the GPU is done.
"""

import contextlib
import logging
import os
import threading
import time
from collections import deque
from typing import Any

from nbmp.cuda import driver
from nbmp.cuda.devices import device_of, uuid_of
from nbmp.cuda.loans import PURPOSE, key_of
from nbmp.cuda.received import opened_event
from nbmp.memory import janitor
from nbmp.memory.descriptors import Owned
from nbmp.memory.mappings import Key
from nbmp.memory.segment import Segment
from nbmp.pickling.arriving import came_along
from nbmp.pickling.luggage import Luggage
from nbmp.pickling.parcel import Held

_log = logging.getLogger("nbmp")

SCAN = 4
"""How many events are asked whether they are free."""

MOST = 1000
"""How many events there are at most: of messages that nobody has received yet, on streams that are busy."""

LOOKS = 8
"""How often an event recorded on an idle stream is asked whether it is done: that takes it some microseconds."""


class _Ticket:
    """An event of this process, and the file of its leases."""

    __slots__ = ("device", "event", "handle", "segment", "used")

    def __init__(self, device: int) -> None:
        self.segment = Segment.create(1, PURPOSE)
        self.device = device
        self.event = driver.new_event(device)
        try:
            self.handle = driver.event_handle(self.event, device)
        except RuntimeError:
            driver.destroy_event(self.event, device)
            raise
        self.used = 0.0

    def record(self, stream: int) -> None:
        driver.record(self.event, stream, self.device)

    def is_done(self) -> bool:
        return driver.is_done(self.event, self.device)

    def is_free(self) -> bool:
        return self.segment.is_free() and self.is_done()


class _Tickets:
    def __init__(self) -> None:
        self._by_key: dict[Key, _Ticket] = {}
        self._queue: deque[_Ticket] = deque()
        self._lock = threading.RLock()

    def record(self, device: int, stream: int) -> "tuple[_Ticket, Owned] | None":
        """Record a free event on this stream; return it with a lease, None when it is done already.

        Waits when there is no event.
        """
        idle = driver.is_idle(stream, device)  # asked first: the event is work as well
        with self._lock:
            ticket = self._free(device)
            if ticket is not None:
                ticket.record(stream)
                ticket.used = time.monotonic()
                if idle and any(ticket.is_done() for _ in range(LOOKS)):
                    return None
                return ticket, ticket.segment.lend()
        driver.finish(device)
        return None

    def _free(self, device: int) -> _Ticket | None:
        for _ in range(min(SCAN, len(self._queue))):
            ticket = self._queue[0]
            self._queue.rotate(-1)
            if ticket.device == device and ticket.is_free():
                return ticket
        if len(self._queue) >= MOST:
            return None
        try:
            ticket = _Ticket(device)
        except RuntimeError as error:  # the driver has no more, or none at all
            _log.debug("no event is to be had to send along (%s): the array is sent when it is complete", error)
            return None
        self._by_key[ticket.segment.key] = ticket
        self._queue.append(ticket)
        return ticket

    def own(self, key: Key) -> _Ticket | None:
        return self._by_key.get(key)

    def trim(self, idle: float = 0.0) -> int:
        """Let go of free events that were not used during the last `idle` seconds; return how many are left."""
        if not self._queue:
            return 0
        with self._lock, driver.beside_captures():
            latest = time.monotonic() - idle
            for ticket in [ticket for ticket in self._queue if ticket.used <= latest and ticket.is_free()]:
                self._queue.remove(ticket)
                del self._by_key[ticket.segment.key]
                with contextlib.suppress(RuntimeError):  # the device has failed
                    driver.destroy_event(ticket.event, ticket.device)
            return len(self._queue)

    def forget(self) -> None:
        """In a forked child: events are the parent's."""
        for ticket in self._queue:
            ticket.segment.control.close()
        self.__init__()  # type: ignore[misc]  # the same object: others refer to it


tickets = _Tickets()
janitor.others.append(tickets.trim)
os.register_at_fork(after_in_child=tickets.forget)


class Moment:
    """What was asked of a stream by a certain time. Arrives as nothing: the receiver's stream has been told to wait."""

    def __init__(self, ticket: _Ticket, stream: int, index: int) -> None:
        self._ticket = ticket
        self._stream = stream
        self._index = index

    def now(self) -> None:
        """Be this moment, no longer the earlier one: the message is still being made."""
        self._ticket.record(self._stream)

    def __reduce__(self) -> tuple[Any, ...]:
        ticket = self._ticket
        return wait_for_moment, (self._index, ticket.handle, uuid_of(ticket.device), os.getpid())


def moment(luggage: Luggage, device: int) -> Moment | None:
    """Return this moment of the current stream of `device`; a message has one that all its arrays share.

    None when nothing need be waited for.
    """
    stream = driver.current_stream(device)
    noted = "moment", device, stream
    found: Moment | None = luggage.notes.get(noted)
    if found is None:
        found = luggage.notes[noted] = _moment(luggage, device, stream)
    else:
        found.now()
    return found


def _moment(luggage: Luggage, device: int, stream: int) -> Moment | None:
    recorded = tickets.record(device, stream)
    janitor.look_after()
    if recorded is None:
        return None
    ticket, lease = recorded
    return Moment(ticket, stream, luggage.add(Held(lease)))


def wait_for_moment(index: int, handle: bytes, name: bytes, sender: int) -> None:
    """Have the current stream of this thread, on that device, wait for the moment.

    Raises
    ------
    DeviceError
        When the sender has ended before its work was done, or the stream is captured into a graph.
    """
    device = device_of(name)
    stream = driver.current_stream(device)
    driver.refuse_capture(stream, device)
    with driver.beside_captures():
        ticket = tickets.own(key_of(came_along(index)))
        if ticket is not None:
            driver.wait_for(ticket.event, stream, device)
            return
        event = opened_event(handle, name, sender)
        try:
            driver.wait_for(event, stream, device)
        finally:
            driver.destroy_event(event, device)
