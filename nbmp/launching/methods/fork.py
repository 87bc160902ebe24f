"""fork: a rank is a copy of this process at this moment and inherits its task."""

import contextlib
import os
import signal
import sys
import warnings
from collections.abc import Iterator, Sequence
from functools import partial

from nbmp import platforms
from nbmp.launching.plan import Plan
from nbmp.launching.private import Descriptor, making
from nbmp.launching.process import UNKNOWN_STATUS, Ending, start_each
from nbmp.launching.quiet import Quiet
from nbmp.launching.rank import forked
from nbmp.launching.threads import limited
from nbmp.pickling.classes import name_classes
from nbmp.waiting import readable


class ChildLife(Ending):
    """A child of this process."""

    def __init__(self, pid: int) -> None:
        super().__init__()
        self.pid = pid
        with making() as register:
            self._sentinel = Descriptor(platforms.exit_sentinel(pid))
            register(self._sentinel)
        self.sentinel = self._sentinel.fileno()

    def wait(self, timeout: float | None = None) -> int | None:
        """Return the exit code, None when it still runs after `timeout` seconds."""
        if self.poll() is None:
            readable(self.sentinel, timeout)
        return self.poll()

    def close(self) -> None:
        self._sentinel.close()

    def _reap(self) -> int | None:
        try:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
        except ChildProcessError:  # somebody else's wait() took it
            return UNKNOWN_STATUS
        return os.waitstatus_to_exitcode(status) if pid == self.pid else None


def start(plans: Sequence[Plan]) -> None:
    """Fork all ranks. On an error, those that run already are killed."""
    name_classes()
    # SIGINT is held back until a rank has its own handler and group, also in launches from other threads.
    held = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        with limited(plans[0].threads if plans else None):
            start_each(plans, partial(_fork, plans=plans, held=held))
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, held)


def _fork(plan: Plan, plans: Sequence[Plan], held: set[int]) -> ChildLife:
    with Quiet() as moment:
        with _no_warning_of_threads():
            pid = os.fork()
        if pid == 0:
            forked(plan, plans, held, moment)
    _lead_group(pid)
    return ChildLife(pid)


@contextlib.contextmanager
def _no_warning_of_threads() -> Iterator[None]:
    """Keep the interpreter's warning (3.12 and later) from the user: the choice of the start method answers it."""
    if sys.version_info >= (3, 12):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            yield
    else:
        yield


def _lead_group(pid: int) -> None:
    """Make `pid` the leader of its own process group; the rank does the same, whoever comes first."""
    with contextlib.suppress(PermissionError, ProcessLookupError):  # it has run another program, or is gone
        os.setpgid(pid, pid)
