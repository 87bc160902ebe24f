"""Starting one worker: a launch of its own, of one rank, so that it can be replaced alone.

It is started, followed, shown and ended as any rank is. What differs: it is not in a monitor, it has no RANK in its
environment, its output is tagged with its place in the pool, and the pool is told when it has ended.
"""

from collections.abc import Callable, Sequence
from typing import Any

from nbmp.launching import seeds
from nbmp.launching.context import ProcessContext
from nbmp.launching.default_method import StartMethod, choose
from nbmp.launching.frontends import Frontend, Sink
from nbmp.launching.messages import Call
from nbmp.launching.record import RankRecord
from nbmp.launching.setups import setups, thread_variables
from nbmp.launching.starting import Task, begin
from nbmp.pickling.leaving import dumps
from nbmp.pickling.parcel import Parcel
from nbmp.pools.messages import Initializer, WorkerEnds
from nbmp.pools.serving import serve


class WorkerContext(ProcessContext):
    """The launch of one worker. `on_end` is called by its supervisor when it has ended and all it wrote is shown."""

    def __init__(
        self,
        records: Sequence[RankRecord],
        slot: int,
        choice: StartMethod,
        frontend: Frontend,
        sink: Sink,
        daemon: bool,
        on_end: Callable[[], None],
    ) -> None:
        self._on_end = on_end
        records[0].shown_as = slot
        for stream in records[0].streams:
            stream.rank = slot
        super().__init__(records, choice, frontend, sink, daemon)

    def failure_line(self) -> str:
        return ""  # the pool tells

    def called(self, record: RankRecord) -> str:
        return f"worker {record.shown_as} of a pool"

    def _rank_ended(self, record: RankRecord) -> None:
        super()._rank_ended(record)
        self._on_end()


class Recipe:
    """How the workers of one pool are made."""

    def __init__(
        self,
        processes: int,
        initializer: Initializer,
        start_method: str | None,
        threads: int | None,
        daemon: bool,
        frontend: Frontend,
    ) -> None:
        self.processes = processes
        self._initializer = initializer
        self._start_method = start_method
        self._threads = threads
        self._daemon = daemon
        self._frontend = frontend
        self._sink = frontend.sink(watched=False)
        self._parcel: Parcel | None = None
        if choose(start_method).method != "fork":
            self.pickled()

    def entered(self, number: int) -> None:
        """It is the recipe of the pool of that number."""
        self._sink.entered(number)

    def pickled(self) -> Parcel:
        """Return the initializer as it was when it was first pickled, for any number of workers."""
        if self._parcel is None:
            self._parcel = dumps(self._initializer, name="")
        return self._parcel

    def start(self, slot: int, serial: int, ends: WorkerEnds, on_end: Callable[[], None]) -> tuple[WorkerContext, bool]:
        """Start a worker; return its launch, and whether it has inherited its initializer (else it is to be sent).

        Parameters
        ----------
        slot, serial : int
            Its place in the pool, 0 to `processes` - 1, and its number among all that the pool ever starts.
        """
        choice = choose(self._start_method)
        forked = choice.method == "fork"
        task = _inherited(ends, self._initializer) if forked else dumps(Call(serve, (ends, None)), name="")
        return self._start(choice, slot, serial, task, on_end), forked

    def _start(
        self,
        choice: StartMethod,
        slot: int,
        serial: int,
        task: Task,
        on_end: Callable[[], None],
    ) -> WorkerContext:
        variables, in_libraries = thread_variables(self.processes, self._threads)
        setup = setups(1, self._daemon, variables, self._frontend, inherits=choice.method == "fork")[0]._replace(
            name=f"worker-{serial}", world_size=self.processes, variables=variables, seeds=seeds.derive_for([serial])[0]
        )

        def follow(records: Sequence[RankRecord]) -> WorkerContext:
            return WorkerContext(records, slot, choice, self._frontend, self._sink, self._daemon, on_end)

        return begin([setup], task, choice, in_libraries, follow)


def _inherited(ends: WorkerEnds, initializer: Initializer) -> Callable[[int], Any]:
    return lambda rank: serve(rank, ends, initializer)
