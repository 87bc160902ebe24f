"""Events of the stand-in: a file with two numbers each, how often it was recorded and how many of those are done."""

from __future__ import annotations

import contextlib
import itertools
import os
import struct
import time
import uuid
from pathlib import Path
from typing import NamedTuple

from tests.cuda.standin.folder import is_running
from tests.cuda.standin.streams import BLOCKING, DEFAULT, Streams

HANDLE = struct.Struct("<16s16sI")
"""Name of a file, UUID of a GPU, process: what is in the 64 bytes of a handle, of memory as well."""
INVALID = "cudaErrorInvalidResourceHandle: invalid resource handle"
_STATE = struct.Struct("<qq")


class Event(NamedTuple):
    """An event as one process has it."""

    name: str
    device: int
    maker: int


class Events(Streams):
    """The events of this process, by address."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._events: dict[int, Event] = {}
        self._numbers = itertools.count(0x1000)

    # --- the driver module's functions ---

    def new_event(self, device: int) -> int:
        name = f"event-{uuid.uuid4().hex[:8]}"
        (self.folder / name).write_bytes(_STATE.pack(0, 0))
        self.note("events")
        return self._entered(Event(name, device, os.getpid()))

    def event_handle(self, event: int, device: int) -> bytes:
        found = self._found(event)
        if found.maker != os.getpid():
            self.violation("a handle of an event that was opened from a handle")
        return HANDLE.pack(found.name.encode(), self.gpus[device], found.maker).ljust(64, b"\0")

    def open_event(self, handle: bytes, device: int) -> int:
        raw, gpu, maker = HANDLE.unpack_from(handle)
        name = raw.rstrip(b"\0").decode()
        if maker == os.getpid():
            self.violation("an event opened in its own process")
        if gpu != self.gpus[device]:
            self.violation("an event opened on another device")
        if not is_running(maker):  # its file is there yet, so it opens: whoever waits for it waits for ever
            self.violation("an event opened whose process has ended")
        if not (self.folder / name).exists():
            raise self.refuse("an event opened that was destroyed", INVALID)
        return self._entered(Event(name, device, maker))

    def is_done(self, event: int, device: int) -> bool:
        self.spoil_capture()
        recorded, done = self._state(self._found(event).name)
        return recorded == done

    def destroy_event(self, event: int, device: int) -> None:
        found = self._found(event)
        if found.maker == os.getpid():
            if not self.is_done(event, device):
                self.violation("an event destroyed that others may be waiting for")
            (self.folder / found.name).unlink()
        del self._events[event]

    def record(self, event: int, stream: int, device: int) -> None:
        self.spoil_capture(stream)
        found = self._found(event)
        if found.device != device:
            raise self.refuse("an event recorded on a stream of another device", INVALID)
        recorded = self._state(found.name)[0] + 1
        self._set(found.name, 0, recorded)
        before = [self.stream(number) for number in {stream, *([BLOCKING] if stream == DEFAULT else [])}]
        if all(other.idle() for other in before):
            self._set(found.name, 1, recorded)
            return

        def work() -> None:
            if stream == DEFAULT:
                self.stream(BLOCKING).synchronize()
            self._set(found.name, 1, recorded)

        self.stream(stream).put(work)

    def wait_for(self, event: int, stream: int, device: int) -> None:
        self.spoil_capture(stream)
        found = self._found(event)
        if not (self.folder / found.name).exists() and is_running(found.maker):
            raise self.refuse("an event waited for that its process has destroyed", INVALID)
        recorded = self._state(found.name)[0]

        def wait() -> None:
            with contextlib.suppress(FileNotFoundError, struct.error):  # its process has ended
                while self._state(found.name)[1] < recorded:
                    time.sleep(0.001)

        self.stream(stream).put(wait)

    # --- inner ---

    def _entered(self, event: Event) -> int:
        address = next(self._numbers)
        self._events[address] = event
        return address

    def _found(self, event: int) -> Event:
        if event not in self._events:
            raise self.refuse("an event used that is destroyed or none", INVALID)
        return self._events[event]

    def _state(self, name: str) -> tuple[int, int]:
        recorded, done = _STATE.unpack((self.folder / name).read_bytes())
        return recorded, done

    def _set(self, name: str, which: int, value: int) -> None:
        with contextlib.suppress(FileNotFoundError), (self.folder / name).open("r+b") as file:
            os.pwrite(file.fileno(), struct.pack("<q", value), 8 * which)
