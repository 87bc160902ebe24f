"""fork: a rank is a copy of this process at this moment and inherits its task."""

import contextlib
import os
import select
import signal
import warnings
from collections.abc import Sequence
from functools import partial

from nbmp import platforms
from nbmp.launching.plan import Plan
from nbmp.launching.private import Descriptor, making
from nbmp.launching.process import UNKNOWN_STATUS, Ending, RankProcess, abandon
from nbmp.launching.rank import forked
from nbmp.launching.threads import limited


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
            wait_readable(self.sentinel, timeout)
        return self.poll()

    def close(self) -> None:
        self._sentinel.close()

    def _reap(self) -> int | None:
        try:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
        except ChildProcessError:  # somebody else's wait() took it
            return UNKNOWN_STATUS
        return os.waitstatus_to_exitcode(status) if pid == self.pid else None


def wait_readable(fd: int, timeout: float | None) -> bool:
    """Wait until `fd` is readable, at most `timeout` seconds; return whether it is."""
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    return bool(poll.poll(None if timeout is None else max(0.0, timeout * 1000)))


def start(plans: Sequence[Plan]) -> list[RankProcess]:
    """Fork all ranks. On an error, those that run already are killed."""
    started: list[RankProcess] = []
    try:
        with limited(plans[0].threads if plans else None):
            for plan in plans:
                process = RankProcess(plan.setup.name, daemon=plan.daemon, begin=partial(_fork, plan=plan, plans=plans))
                process.start()
                started.append(process)
                plan.ends.close()
    except BaseException:
        abandon(started)
        raise
    return started


def _fork(process: RankProcess, plan: Plan, plans: Sequence[Plan]) -> ChildLife:
    # SIGINT is held back until the rank has its own handler and group; the interpreter's warning about threads is
    # answered by the choice of the start method (`nbmp.launching.default_method`).
    held = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            pid = os.fork()
        if pid == 0:
            forked(process, plan, plans, held)
        _lead_group(pid)
        return ChildLife(pid)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, held)


def _lead_group(pid: int) -> None:
    """Make `pid` the leader of its own process group; the rank does the same, whoever comes first."""
    with contextlib.suppress(PermissionError, ProcessLookupError):  # it has run another program, or is gone
        os.setpgid(pid, pid)
