"""What goes on while somebody is killed: ranks are launched, exchange arrays, are joined and come to their end.

The beginning of each phase is told by a file of its name in the current folder; the launching process, a kernel or
the tests, tells of launch, transfer and join, rank 0 of its exit.
"""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path
from queue import Empty
from typing import Any

import numpy as np

import nbmp
from tests.waiting import tell

PHASES = ("launch", "transfer", "join", "exit")
RANKS = 2
SIZE = 20_000
"""Elements of an array: it travels in a segment."""
TRANSFER_SECONDS = JOIN_SECONDS = 0.2
PATIENCE = 20.0


def exchange(rank: int, folder: str, inbox: Any, outbox: Any, shared: Any, stays: bool) -> Any:
    """Send back what comes, one more, until None comes; stay a while; return an array."""
    outbox.put(rank)
    while (array := inbox.get()) is not None:
        shared[rank] += 1
        outbox.put(array + 1)
    time.sleep(PATIENCE * 3 if stays else JOIN_SECONDS)
    if rank == 0:
        tell(Path(folder, "exit"), "now")
    return np.full(SIZE, float(rank))


class Life:
    """One launch from its beginning to its end."""

    def __init__(self, method: str, *, stays: bool = False) -> None:
        self.context: nbmp.ProcessContext | None = None
        self._method = method
        self._stays = stays
        self._inbox, self._outbox = nbmp.Queue(), nbmp.Queue()
        self._shared = nbmp.zeros((RANKS, SIZE))

    def lead(self) -> list[Any]:
        """Return the results."""
        self.begin()
        tell("join", "now")
        self._of_launch().join()
        return self._of_launch().results

    def begin(self) -> None:
        """All up to the joining."""
        tell("launch", "now")
        args = (os.getcwd(), self._inbox, self._outbox, self._shared, self._stays)
        self.context = nbmp.start_processes(exchange, args, RANKS, join=False, start_method=self._method)
        for _ in range(RANKS):
            self._take()
        tell("transfer", "now")
        end = time.monotonic() + TRANSFER_SECONDS
        count = 0
        while time.monotonic() < end:
            self._inbox.put(np.full(SIZE, float(count)))
            self._inbox.put(self._shared)
            for _ in range(2):
                assert self._take().size in (SIZE, RANKS * SIZE)
            count += 1
        for _ in range(RANKS):
            self._inbox.put(None)
        assert self._shared[:, 0].sum() == 2 * count

    def _take(self) -> Any:
        """Return what a rank puts; raise if one has failed."""
        end = time.monotonic() + PATIENCE
        while True:
            with contextlib.suppress(Empty):
                return self._outbox.get(timeout=0.05)
            self._of_launch().join(0)
            assert time.monotonic() < end, "nothing comes, and no rank has failed"

    def _of_launch(self) -> nbmp.ProcessContext:
        assert self.context is not None
        return self.context
