"""Slots of a bounded queue, and counters, that a killed process cannot get wrong.

A semaphore's count would be lost with a process that is killed between taking a slot and giving it back. So a slot is a
lock on one byte of a memory file, held by an open file description of its own that travels with the item: the lock ends
when the description is closed, by the receiver, by the kernel for a process that is killed, or with a message that is
thrown away.
"""

import fcntl
import os
import struct
import time
from functools import partial
from typing import Any

from nbmp import platforms
from nbmp.memory.descriptors import Owned, made, reopened
from nbmp.waiting import readable

LOOK_SECONDS = 0.05
"""How often a full queue is looked at without a word from a receiver."""


class Slots:
    """`count` slots, shared by every process that has the two descriptors."""

    def __init__(self, count: int, file: Owned | None = None, freed: Owned | None = None) -> None:
        self.count = count
        self.file = file or made(platforms.anonymous_file, "nbmp-slots")
        self.freed = freed or made(os.eventfd, 0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._next = 0

    def take(self, timeout: float | None) -> Owned | None:
        """Return a slot, to be closed by whoever takes the item; None when none is free within `timeout` seconds."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            slot = self._try()
            if slot is not None:
                return slot
            left = LOOK_SECONDS if deadline is None else min(LOOK_SECONDS, deadline - time.monotonic())
            if left <= 0:
                return None
            if readable(self.freed.fileno(), left):
                _read(self.freed)

    def tell_freed(self) -> None:
        """A slot has been given back: wake somebody who waits for one."""
        os.eventfd_write(self.freed.fileno(), 1)

    def is_full(self) -> bool:
        """Return whether no slot is free at this moment."""
        return self._try() is None

    def _try(self) -> Owned | None:
        slot = reopened(self.file.fileno())
        for attempt in range(self.count):
            place = (self._next + attempt) % self.count
            try:
                fcntl.fcntl(slot.fileno(), fcntl.F_OFD_SETLK, _lock_of_byte(place))
            except BlockingIOError:
                continue
            self._next = (place + 1) % self.count
            return slot
        return None


class Counter:
    """A number that every process that has the descriptor can raise and lower."""

    def __init__(self, owned: Owned | None = None) -> None:
        self.owned = owned or made(os.eventfd, 0, os.EFD_CLOEXEC | os.EFD_NONBLOCK | os.EFD_SEMAPHORE)
        self.raise_ = partial(os.eventfd_write, self.owned.fileno(), 1)
        """Add 1."""

    def lower(self) -> bool:
        """Return False when it is 0 already."""
        return _read(self.owned)

    def value(self) -> int:
        with open(f"/proc/self/fdinfo/{self.owned.fileno()}") as file:
            for line in file:
                if line.startswith("eventfd-count:"):
                    return int(line.split()[1], 16)
        raise OSError("this system does not tell the value of an eventfd")


def _read(owned: Owned) -> bool:
    try:
        os.eventfd_read(owned.fileno())
    except BlockingIOError:
        return False
    return True


def _lock_of_byte(place: int) -> Any:
    return struct.pack("hhqqi", fcntl.F_WRLCK, os.SEEK_SET, place, 1, 0)
