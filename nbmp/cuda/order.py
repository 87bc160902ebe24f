"""The order of work on GPUs across processes: who receives an array waits for what its sender had asked for by then.

    put   an event is recorded on the caller's current stream, unless all of that is done already
    get   the current stream of whoever receives waits for it: on the GPU; Python goes on

The event must live until the receiver has opened it, and must not be recorded anew before: that would have the
receiver wait for later work, which may be waiting for the receiver. So it is lent as memory is, by a lease that travels
along. It is used again, or destroyed, when that has ended and the event is done: until then the receiver's stream may
be waiting for it. In the long run no event and no lease file are made.
"""

import os
import threading
import time
from collections import deque
from typing import Any

from nbmp.cuda import driver
from nbmp.cuda.devices import device_of, uuid_of
from nbmp.cuda.loans import PURPOSE, key_of
from nbmp.memory import janitor
from nbmp.memory.descriptors import Owned
from nbmp.memory.mappings import Key
from nbmp.memory.segment import Segment
from nbmp.pickling.arriving import came_along
from nbmp.pickling.luggage import Luggage
from nbmp.pickling.parcel import Held

SCAN = 4
"""How many events are asked whether they are free."""


class _Ticket:
    """An event of this process, and the file of its leases."""

    __slots__ = ("device", "event", "handle", "segment", "used")

    def __init__(self, device: int) -> None:
        self.segment = Segment.create(1, PURPOSE)
        self.device = device
        self.event = driver.new_event(device)
        self.handle = driver.event_handle(self.event, device)
        self.used = 0.0

    def is_free(self) -> bool:
        return self.segment.is_free() and driver.is_done(self.event)


class _Tickets:
    def __init__(self) -> None:
        self._by_key: dict[Key, _Ticket] = {}
        self._queue: deque[_Ticket] = deque()
        self._lock = threading.RLock()

    def record(self, device: int, stream: int) -> tuple[_Ticket, Owned]:
        """Record a free event on this stream; return it with a lease."""
        with self._lock:
            ticket = self._free(device)
            driver.record(ticket.event, stream, device)
            ticket.used = time.monotonic()
            lease = ticket.segment.lend()
        janitor.look_after()
        return ticket, lease

    def _free(self, device: int) -> _Ticket:
        for _ in range(min(SCAN, len(self._queue))):
            ticket = self._queue[0]
            self._queue.rotate(-1)
            if ticket.device == device and ticket.is_free():
                return ticket
        ticket = _Ticket(device)
        self._by_key[ticket.segment.key] = ticket
        self._queue.append(ticket)
        return ticket

    def own(self, key: Key) -> _Ticket | None:
        return self._by_key.get(key)

    def trim(self, idle: float = 0.0) -> int:
        """Let go of free events that were not used during the last `idle` seconds; return how many are left."""
        with self._lock:
            latest = time.monotonic() - idle
            for ticket in [ticket for ticket in self._queue if ticket.used <= latest and ticket.is_free()]:
                self._queue.remove(ticket)
                del self._by_key[ticket.segment.key]
                driver.destroy_event(ticket.event)
            return len(self._queue)

    def forget(self) -> None:
        """In a forked child: events are the parent's."""
        for ticket in self._queue:
            ticket.segment.control.close()
        self.__init__()  # type: ignore[misc]  # the same object: others refer to it


_tickets = _Tickets()
janitor.others.append(_tickets.trim)
os.register_at_fork(after_in_child=_tickets.forget)


class Moment:
    """What was asked of a stream by a certain time. Arrives as nothing: the receiver's stream has been told to wait."""

    def __init__(self, index: int, handle: bytes, device: bytes) -> None:
        self._fields = index, handle, device

    def __reduce__(self) -> tuple[Any, ...]:
        return wait_for_moment, self._fields


def moment(luggage: Luggage, device: int, *, anew: bool = False) -> Moment | None:
    """Return this moment of the current stream of `device`, the same for a whole message unless `anew`.

    None when nothing need be waited for.
    """
    stream = driver.current_stream(device)
    noted = "moment", device, stream
    if anew or noted not in luggage.notes:
        luggage.notes[noted] = _moment(luggage, device, stream)
    found: Moment | None = luggage.notes[noted]
    return found


def _moment(luggage: Luggage, device: int, stream: int) -> Moment | None:
    if driver.is_idle(stream, device):
        return None
    ticket, lease = _tickets.record(device, stream)
    return Moment(luggage.add(Held(lease)), ticket.handle, uuid_of(device))


def wait_for_moment(index: int, handle: bytes, name: bytes) -> None:
    """Have the current stream of this thread, on that device, wait for the moment."""
    device = device_of(name)
    stream = driver.current_stream(device)
    ticket = _tickets.own(key_of(came_along(index)))
    if ticket is not None:
        driver.wait_for(ticket.event, stream, device)
        return
    event = driver.open_event(handle, device)
    driver.wait_for(event, stream, device)
    driver.destroy_event(event)
