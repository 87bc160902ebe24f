"""Single processes: `multiprocessing.Process`, started our way.

    def work(queue): ...                 # also in a cell, without a guard
    process = nbmp.Process(target=work, args=(queue,))
    process.start()
    process.join()

Names and meanings are the standard library's. What differs: functions and classes of `__main__` travel by value, arrays
in shared memory; what the process writes is shown where it was started, in whole lines tagged with its name; it is
killed with the process that started it, and takes what it has started along when it is killed; the global random
generators are seeded anew, by the number in its name.
"""

import multiprocessing.process
import re
import signal
import time
from collections.abc import Sequence
from multiprocessing.util import Finalize
from typing import Any, ClassVar
from weakref import WeakSet

from nbmp.errors import CannotTravelError
from nbmp.launching import seeds, unjoined
from nbmp.launching.context import ProcessContext
from nbmp.launching.default_method import StartMethod, choose
from nbmp.launching.exiting import end_at_exit
from nbmp.launching.frontends import Frontend, current
from nbmp.launching.interrupted import explain
from nbmp.launching.interrupts import held_back
from nbmp.launching.left import remember
from nbmp.launching.messages import Call
from nbmp.launching.private import in_forked_child
from nbmp.launching.process import Life, RankProcess
from nbmp.launching.record import RankRecord
from nbmp.launching.setups import setups
from nbmp.launching.starting import Task, begin
from nbmp.launching.stopping import INTERRUPT_SECONDS
from nbmp.launching.written import outputs
from nbmp.pickling.leaving import dumps
from nbmp.pickling.parcel import Parcel


class Process(RankProcess):
    """An activity in a process of its own; `multiprocessing.Process`, with its parameters and methods.

    An exception that the process does not catch is printed to its stderr and makes its exit code 1. An interrupt in
    `join` is passed on to all processes that run. A process that runs at exit is waited for, a daemon stopped, and in
    a notebook every process is stopped with the kernel.
    """

    _method: ClassVar[str | None] = None
    """Its start method; None: see `nbmp.default_start_method`."""

    _launch: "ProcessLaunch | None" = None

    def join(self, timeout: float | None = None) -> None:
        """Wait until it has ended and what it wrote is shown, at most `timeout` seconds."""
        deadline = None if timeout is None else time.monotonic() + timeout
        try:
            super().join(timeout)
            if self._launch is not None and self.exitcode is not None:
                self._launch.heard(None if deadline is None else deadline - time.monotonic())
        except KeyboardInterrupt:
            _interrupt_all()
            raise

    def terminate(self) -> None:
        """Ask it, and what it started, to end (SIGTERM)."""
        self._stopping()
        super().terminate()

    def kill(self) -> None:
        """End it, and what it started (SIGKILL)."""
        self._stopping()
        super().kill()

    def close(self) -> None:
        """Give up what is held for it; ValueError while it runs."""
        if self._launch is not None and self.exitcode is not None:
            self._launch.heard(None)
        super().close()
        self._launch = None

    def _come_alive(self, begin: Any) -> None:
        self._popen = begin()
        self._sentinel = self._popen.sentinel

    def _Popen(self, process: Any) -> Life:  # called by `start`, when it has found that this process may be started
        choice, frontend = choose(self._method), current()
        task: Task = (lambda rank: _be(rank, self)) if choice.method == "fork" else _pickled(self)
        number = self._identity[-1]
        setup = setups(1, self.daemon, {}, frontend, inherits=choice.method == "fork")[0]._replace(
            name=self.name, variables={}, seeds=seeds.derive_for([number])[0], is_process=True
        )

        def follow(records: Sequence[RankRecord]) -> ProcessLaunch:
            return ProcessLaunch(records, choice, frontend, self)

        try:
            with held_back():
                self._launch = begin([setup], task, choice, None, follow, [self])
        except BaseException as error:
            if self._launch is not None:
                self._launch.stop(INTERRUPT_SECONDS, reason="an interrupt")
            if isinstance(error, KeyboardInterrupt):
                explain(error, f"{self.name} was being started, and was stopped")
            self._popen = self._launch = None
            raise
        _started.add(self)
        life: Life = self._popen
        return life

    def _stopping(self) -> None:
        if self._launch is not None and self.exitcode is None:
            self._launch.ranks[0].stopping = True


class ForkProcess(Process):
    """A process that is forked."""

    _method = "fork"


class ForkServerProcess(Process):
    """A process that is forked from the fork server."""

    _method = "forkserver"


class SpawnProcess(Process):
    """A process in a new interpreter."""

    _method = "spawn"


class ProcessLaunch(ProcessContext):
    """The launch of one process."""

    kind = "process"

    def __init__(self, records: Sequence[RankRecord], choice: StartMethod, frontend: Frontend, process: Process):
        for stream in records[0].streams:
            stream.rank, stream.label = process._identity[-1], process.name
        self.name = process.name
        sink = frontend.sink(watched=False)
        super().__init__(records, choice, frontend, sink, process.daemon)
        if frontend.stops_ranks_at_exit:
            end_at_exit(self)  # otherwise multiprocessing joins it, and before that shuts down what it is to serve
            outputs.remember(self)
            sink.entered(self.number)

    def heard(self, timeout: float | None) -> None:
        """Wait until all that it wrote is shown: somebody has joined it."""
        self.finished.wait(timeout)
        unjoined.forget(self._number)

    def failure_line(self) -> str:
        failure = self.ranks[0].failure
        if failure is None:
            return ""
        return f"{self.name} (pid {failure.pid}) failed and was never joined: {failure.summary}"

    def called(self, record: RankRecord) -> str:
        return self.name

    def _rank_ended(self, record: RankRecord) -> None:
        remember(record.notes, self.called(record), record.state)
        self.sentinels.clear()
        self.processes.clear()
        record.process = None  # the user's object, which knows this launch: no circle is left behind
        self._finish()


_started: "WeakSet[Process]" = WeakSet()


def _interrupt_all() -> None:
    """Pass an interrupt on, as a terminal does to all processes of a program."""
    for process in list(_started):
        life = process._popen
        if life is not None:
            life.signal(signal.SIGINT)


def _expect_end_of_daemons() -> None:
    """At exit multiprocessing stops the daemons: no failure of theirs."""
    for process in list(_started):
        if process.daemon and process._popen is not None:
            process._stopping()


def _pickled(process: Process) -> Parcel:
    try:
        return dumps(Call(_be, (process,)), name="")
    except CannotTravelError as error:  # it names the place as the caller knows it: `args[1].lock`
        path = re.sub(r"^args\[0\]\.(_(?=target|args|kwargs))?", "", error.path)
        raise CannotTravelError(str(error).replace(error.path, path, 1), path) from error.__cause__


def _be(rank: int, process: Process) -> None:
    """In the new process: be `process`."""
    multiprocessing.process._current_process = process  # type: ignore[attr-defined]  # where `current_process` looks
    process.run()


in_forked_child(_started.clear)
Finalize(None, _expect_end_of_daemons, exitpriority=0)
