"""Streams of the stand-in: threads that do what they are told in order, so that work is late, as on a GPU."""

from __future__ import annotations

import contextlib
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path

from nbmp.errors import DeviceError
from tests.cuda.standin.folder import Machine

DEFAULT = 0
"""CUDA's default stream: what it is told waits for all streams that are not `non_blocking`."""
BLOCKING = 8
"""This one is like `cupy.cuda.Stream()`, all others are like `cupy.cuda.Stream(non_blocking=True)`."""
SIDE = 7


class Stream:
    """Does what it is told in order, in a thread that ends when there is nothing to do."""

    def __init__(self) -> None:
        self._work: deque[Callable[[], object]] = deque()
        self._changed = threading.Condition()
        self._runs = False

    def put(self, work: Callable[[], object]) -> None:
        with self._changed:
            self._work.append(work)
            if not self._runs:
                self._runs = True
                threading.Thread(target=self._run, name="stand-in stream", daemon=True).start()

    def idle(self) -> bool:
        return not self._runs

    def synchronize(self) -> None:
        with self._changed:
            self._changed.wait_for(self.idle)

    def _run(self) -> None:
        while True:
            self._work[0]()
            with self._changed:
                self._work.popleft()
                if not self._work:
                    self._runs = False
                    self._changed.notify_all()
                    return


class Streams(Machine):
    """The streams of this process, by number."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._streams: dict[int, Stream] = {}
        self._captured: set[int] = set()
        self._current = threading.local()

    # --- the driver module's functions ---

    def current_stream(self, device: int) -> int:
        return int(getattr(self._current, "stream", DEFAULT))

    def is_idle(self, stream: int, device: int) -> bool:
        """Say so of this stream alone: whether a driver looks at those that the default stream waits for is vague."""
        self.spoil_capture(stream)
        return self.stream(stream).idle()

    def synchronize(self, stream: int, device: int) -> None:
        self.spoil_capture(stream)
        if stream == DEFAULT:
            self.stream(BLOCKING).synchronize()
        self.stream(stream).synchronize()

    def refuse_capture(self, stream: int, device: int) -> None:
        if stream in self._captured:
            raise DeviceError("the current stream is being captured into a CUDA graph")

    @contextlib.contextmanager
    def beside_captures(self) -> Iterator[None]:
        before = getattr(self._current, "beside", False)
        self._current.beside = True
        try:
            yield
        finally:
            self._current.beside = before

    def finish(self, device: int) -> None:
        while self._captured:
            time.sleep(0.01)
        for stream in list(self._streams.values()):
            stream.synchronize()

    # --- for the tests ---

    @contextlib.contextmanager
    def capturing(self, number: int) -> Iterator[None]:
        """Have this stream captured into a graph."""
        self._captured.add(number)
        try:
            yield
        finally:
            self._captured.remove(number)

    def spoil_capture(self, stream: int | None = None) -> None:
        """Note it when this stream is captured; or any, in a thread that has not said that it works beside captures."""
        if stream in self._captured:
            raise self.refuse("a captured stream asked for something else", "cudaErrorStreamCaptureUnsupported")
        if self._captured and not getattr(self._current, "beside", False):
            self.violation("a capture of another thread spoilt")

    def stream(self, number: int) -> Stream:
        with self._lock:
            return self._streams.setdefault(number, Stream())

    def all_idle(self) -> bool:
        return all(stream.idle() for stream in list(self._streams.values()))

    @contextlib.contextmanager
    def on_stream(self, number: int) -> Iterator[None]:
        """Have `number` be the current stream of this thread."""
        before = self.current_stream(0)
        self._current.stream = number
        try:
            yield
        finally:
            self._current.stream = before
