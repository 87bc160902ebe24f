"""A rank as a process of the standard library: a `multiprocessing.process.BaseProcess`, started and ended our way."""

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Sequence
from functools import partial
from multiprocessing.process import BaseProcess
from typing import TYPE_CHECKING, Protocol

from nbmp import platforms
from nbmp.errors import StartError

if TYPE_CHECKING:
    from nbmp.launching.plan import Plan

UNKNOWN_STATUS = 255
"""Exit code of a process whose status somebody else took (a `wait()` of the user's, a fork server that was killed)."""

ABANDON_SECONDS = 5.0
"""How long to wait for the end of a process that was killed."""


class ServerEndedError(StartError):
    """The fork server has died and not all ranks of a launch are there: no rank has been given its task yet."""


class Life(Protocol):
    """A started process, however it was started. What `multiprocessing` calls a popen object."""

    pid: int
    sentinel: int
    """A descriptor that becomes readable when the process has ended."""

    def poll(self) -> int | None:
        """Return the exit code, minus the signal's number after a signal, None while it runs. Does not block."""

    def wait(self, timeout: float | None = None) -> int | None:
        """As `poll`, after at most `timeout` seconds; None waits without a bound."""

    def terminate(self) -> None: ...
    def kill(self) -> None: ...
    def signal(self, number: int) -> None: ...
    def signal_thread(self, thread: int, number: int) -> bool: ...
    def close(self) -> None: ...


class RankProcess(BaseProcess):
    """The process of one rank. In the launching process a handle; in the rank `multiprocessing.current_process()`."""

    _start_method = None  # a rank keeps its own default, it does not inherit how it was started

    _unpickles = False
    """Whether the rank is at its task's arrival, which may import modules of the user's; set in the rank."""

    _begin: Callable[[], Life] | None = None

    def _come_alive(self, begin: Callable[[], Life]) -> None:
        """Start it by calling `begin()`; otherwise as `start` of multiprocessing's."""
        self._begin = begin
        try:
            BaseProcess.start(self)
        finally:
            del self._begin

    def _Popen(self, process: BaseProcess) -> Life:  # the name is multiprocessing's
        assert self._begin is not None, "a rank is started by its launch"
        return self._begin()

    def _signal_thread(self, thread: int, number: int) -> bool:
        """Send a signal to one thread of the rank; return whether it is there."""
        life: Life | None = self._popen  # type: ignore[attr-defined]
        return life is not None and life.signal_thread(thread, number)

    def _has_gone(self) -> bool:
        """Return whether the process has ended, or its handle was closed."""
        life: Life | None = self._popen  # type: ignore[attr-defined]
        return life is None or life.poll() is not None

    def _live(self, body: Callable[[], None], lifeline: int) -> int:
        """In the rank: be its process while `body()` runs; return the exit code."""

        def run() -> None:
            del vars(self)["run"]
            body()

        vars(self)["run"] = run
        return self._bootstrap(parent_sentinel=lifeline)  # type: ignore[attr-defined, no-any-return]

    def _adopt(self, parent: tuple[str, int], authkey: bytes) -> None:
        """In a rank that is no fork of the launching process: know its name and pid, and its key."""
        self._parent_name, self._parent_pid = parent
        self.authkey = authkey


def signal_group(pid: int, number: int) -> None:
    """Send a signal to a rank's process group: the rank and what it started. `pid` must not be reaped yet."""
    try:
        os.killpg(pid, number)
    except ProcessLookupError:  # it has not made its group yet
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def start_each(plans: "Sequence[Plan]", begin: Callable[["Plan"], Life]) -> None:
    """Start the ranks one after the other by `begin(plan)`. On an error, those that run already are killed."""
    started: list[RankProcess] = []
    try:
        for plan in plans:
            plan.process._come_alive(partial(begin, plan))
            started.append(plan.process)
            plan.ends.close()
    except BaseException:
        abandon(started)
        raise


def abandon(started: Sequence[RankProcess]) -> None:
    """Kill these ranks and wait for their end: the launch they belong to has failed."""
    for process in started:
        process.kill()
    for process in started:
        process.join(ABANDON_SECONDS)


class Ending:
    """The part of a `Life` that ends it. Thread-safe: no signal goes to a process that is reaped already."""

    pid: int

    def __init__(self) -> None:
        self._code: int | None = None
        self._reaping = threading.RLock()

    def poll(self) -> int | None:
        """Return the exit code, None while it runs."""
        with self._reaping:
            if self._code is None:
                self._code = self._reap()
            return self._code

    def terminate(self) -> None:
        """Ask to end: SIGTERM to the rank's process group."""
        self.signal(signal.SIGTERM)

    def kill(self) -> None:
        """End: SIGKILL to the rank's process group."""
        self.signal(signal.SIGKILL)

    def signal(self, number: int) -> None:
        """Send a signal to the rank's process group."""
        with self._reaping:
            if self.poll() is None:
                signal_group(self.pid, number)

    def signal_thread(self, thread: int, number: int) -> bool:
        """Send a signal to one thread of the rank; return whether it is there."""
        with self._reaping:
            return self.poll() is None and platforms.signal_thread(self.pid, thread, number)

    def _reap(self) -> int | None:
        """Return the exit code if it has ended; does not block."""
        raise NotImplementedError
