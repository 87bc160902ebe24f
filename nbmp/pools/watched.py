"""What a monitor asks of a pool's workers, from any thread: a `nbmp.launching.registry.Group`, but for its end."""

import os
import threading
from collections.abc import Iterable
from dataclasses import replace

from nbmp.launching.frontends import Frontend
from nbmp.launching.record import RankRecord
from nbmp.launching.where.asking import SECONDS, ask
from nbmp.launching.where.stacks import Stacks
from nbmp.pools.starting import Recipe
from nbmp.pools.worker import Worker


class Watched:
    """The workers that run; the pool's thread changes which those are.

    Attributes
    ----------
    finished : threading.Event
        Set when the last worker has ended.
    owner : int
        The process whose workers they are.
    """

    kind = "pool"
    number = 0
    name = ""

    def __init__(self, recipe: Recipe, frontend: Frontend) -> None:
        self.owner = os.getpid()
        self.finished = threading.Event()
        self._recipe = recipe
        self._frontend = frontend
        self._workers: list[Worker] = []

    @property
    def processes(self) -> int:
        return self._recipe.processes

    @property
    def frontend(self) -> Frontend:
        return self._frontend

    def pids(self) -> list[int]:
        """Return the process ids of the workers that run."""
        return [worker.record.pid for worker in list(self._workers) if worker.record.pid is not None]

    @property
    def ranks(self) -> list[RankRecord]:
        """What is known of the workers that run, in the order of their places."""
        return [worker.record for worker in sorted(self._workers, key=lambda worker: worker.slot)]

    @property
    def start_method(self) -> str:
        return next((worker.context.start_method for worker in list(self._workers)), "")

    @property
    def start_method_reason(self) -> str:
        return next((worker.context.start_method_reason for worker in list(self._workers)), "")

    def stacks(self, ranks: Iterable[int] | None = None, *, timeout: float = SECONDS) -> Stacks:
        """Return where the workers are; see `ProcessContext.stacks`."""
        self.assert_own()
        wanted = None if ranks is None else set(ranks)
        records = [record for record in self.ranks if wanted is None or record.shown_as in wanted]
        return Stacks(tuple(replace(told, kind="worker") for told in ask(records, self._frontend, timeout)))

    def assert_own(self) -> None:
        """Raise in a forked child: the pool there is a copy without workers."""
        if os.getpid() != self.owner:
            raise RuntimeError(f"this pool belongs to process {self.owner}, which forked this one: make a pool here")
