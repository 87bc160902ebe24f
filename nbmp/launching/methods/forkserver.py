"""forkserver: a rank is forked from a small process that has NumPy, cloudpickle and nbmp loaded and nothing else.

    launching process                          fork server (one, started at first use)         rank
      request: Setup, five descriptors   ──>   forks                                    ──>    runs
      reads pid, later the exit status   <──   writes them to the rank's status pipe

All ranks of a launch are asked for before the first answer is awaited, so they start side by side. One whose server
is killed before it gets its task has done nothing yet: the launch is repeated if none is there. The server's
socket is an inherited pair: it has no name and nobody else can connect. The server ends when the launching process is
gone, since that holds the only other end.
"""

import contextlib
import os
import struct
import subprocess
import threading
import time
from collections.abc import Sequence
from multiprocessing.util import Finalize

from nbmp import platforms
from nbmp.channels import Channel
from nbmp.errors import StartError
from nbmp.launching.channel import TASK, plain
from nbmp.launching.interrupted import tell_of_ranks
from nbmp.launching.interrupts import LOOK_SECONDS, held_back
from nbmp.launching.messages import Request
from nbmp.launching.methods.spawn import interpreter, package_root
from nbmp.launching.plan import Plan
from nbmp.launching.private import Descriptor, in_forked_child, making
from nbmp.launching.process import UNKNOWN_STATUS, Ending, ServerEndedError, start_each
from nbmp.launching.shortage import explanation
from nbmp.launching.threads import SERVER_THREADS, THREAD_VARIABLES, as_set
from nbmp.pickling.arriving import TravellingFd
from nbmp.pickling.parcel import FdOwner
from nbmp.waiting import readable

ANSWER = struct.Struct("=q")
START_SECONDS = 60.0
"""How long the server may take to fork a rank; it may still have to import NumPy."""
STOPPED_SECONDS = 1.0
"""The same for a server that a signal has stopped."""
END_SECONDS = 2.0
"""How long the server may take to end by itself."""

_AT_LAST = -200
"""As a priority at exit: when multiprocessing has joined its processes, whose exit codes come from the server."""

_ENDED = (
    "the fork server (pid {}) ended before it had started the rank; what it wrote is on this process' stderr; the next "
    "launch starts another"
)
_BOOT = (
    "import sys; sys.path[:] = [{root!r}, *filter(None, sys.path)]; import nbmp; del sys.path[0]; "
    "from nbmp.launching.server import serve; serve({channel}, {preload!r})"
)


class _Server:
    """This process' fork server."""

    def __init__(self) -> None:
        with making() as register:
            ours, theirs = Channel.pair()
            register(ours)
        self.channel = ours
        boot = _BOOT.format(root=package_root(), channel=theirs.fileno(), preload=_preload)
        self._popen = subprocess.Popen(
            interpreter("-c", boot),
            stdin=subprocess.DEVNULL,
            pass_fds=(theirs.fileno(),),
            env={**os.environ, **dict.fromkeys(THREAD_VARIABLES, str(SERVER_THREADS))},
            start_new_session=True,
        )
        theirs.close()

    @property
    def pid(self) -> int:
        return self._popen.pid

    def alive(self) -> bool:
        return self._popen.poll() is None

    def ends(self) -> bool:
        """Wait a little for its end; return whether it has ended."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._popen.wait(END_SECONDS)
        return not self.alive()

    def close(self) -> None:
        self.channel.close()
        if not self.ends():  # stopped by a signal, perhaps
            self._popen.kill()
            self._popen.wait()


_preload: list[str] = []
_server: _Server | None = None
_lock = threading.Lock()


def start(plans: Sequence[Plan]) -> None:
    """Have all ranks forked. On an error, those that run already are killed.

    They are asked for all at once and then waited for one by one. ServerEndedError when the server has died before it
    had started all of them.
    """
    with _lock:
        server = _running_server()
        pipes = [_request(server, plan) for plan in plans]
    start_each(plans, lambda plan: ServedLife(pipes.pop(0), server))


def set_preload(names: Sequence[str]) -> None:
    """Have the next fork server load these modules, besides nbmp's own; those that cannot be imported are left out."""
    global _preload
    if not all(isinstance(name, str) for name in names):
        raise TypeError("module_names must be a list of strings")
    _preload = list(names)


def server_pid() -> int | None:
    """Return the process id of the fork server, None when none was needed yet."""
    return None if _server is None else _server.pid


def stop_server() -> None:
    """End the fork server; ranks that it forked go on. The next launch starts another."""
    global _server
    with _lock:
        if _server is not None:
            _server.close()
            _server = None


def _running_server() -> _Server:
    global _server
    if _server is not None and not _server.alive():
        _server.close()
        _server = None
    if _server is None:
        _server = _Server()
    return _server


def _request(server: _Server, plan: Plan) -> Descriptor:
    """Ask for a rank; return the pipe that tells of it, at its end when the server is gone.

    The rank's ends stay open here until it is there; forked children of this process have no use for them.
    """
    ends = plan.ends
    with making() as register:
        for end in (ends.channel, ends.lifeline, ends.stdout, ends.stderr):
            register(end)
        read, write = os.pipe2(os.O_CLOEXEC)
        pipe = Descriptor(read)
        register(pipe)
    status = Descriptor(write)
    owners: list[FdOwner] = [ends.channel, ends.lifeline, ends.stdout, ends.stderr, status]
    # the server's libraries have one thread, whatever the variables say that the rank is to obey
    threads = as_set(plan.setup.environment) if plan.threads is None else plan.threads
    request = Request(threads, *map(TravellingFd, range(len(owners))))
    try:
        server.channel.send(plain(request, owners), TASK)
    except (BrokenPipeError, ConnectionResetError):
        pass
    except OSError as error:
        raise StartError(f"the fork server (pid {server.pid}) cannot be asked: {error}") from error
    finally:
        status.close()
    return pipe


def _await_answer(fd: int, server: _Server) -> None:
    """Wait until the server has answered; StartError when it does not, an interrupt is raised at once."""
    pid = server.pid
    begun = runs = time.monotonic()
    with held_back() as presses:
        while not readable(fd, LOOK_SECONDS):
            now = time.monotonic()
            if not server.alive() and not readable(fd, 0):  # killed in between: the rank that it forked has the pipe
                raise ServerEndedError(_ENDED.format(pid))
            status = platforms.thread_status(pid, pid)
            if status is None or status.state != "T":
                runs = now
            try:
                presses.deliver()
            except KeyboardInterrupt as press:
                text = f"the fork server (pid {pid}) had not started all of them, those that ran were killed"
                tell_of_ranks(press, text)
                raise
            if now - runs > STOPPED_SECONDS:
                raise StartError(
                    f"the fork server (pid {pid}) is stopped by a signal and starts no rank; `kill -CONT {pid}` "
                    f"lets it go on, `kill -9 {pid}` has the next launch start another"
                )
            if now - begun > START_SECONDS:
                raise StartError(f"the fork server (pid {pid}) did not start a rank within {START_SECONDS:.0f} s")


class ServedLife(Ending):
    """A rank that the fork server started and reaps; its exit status comes through the status pipe."""

    def __init__(self, pipe: Descriptor, server: _Server) -> None:
        super().__init__()
        self._pipe = pipe
        self.sentinel = pipe.fileno()
        _await_answer(self.sentinel, server)
        answer = os.read(self.sentinel, ANSWER.size)
        if not answer:
            raise (ServerEndedError if server.ends() else StartError)(_ENDED.format(server.pid))
        (self.pid,) = ANSWER.unpack(answer)
        if self.pid < 0:
            raise StartError(f"no rank could be started: {explanation(-self.pid) or os.strerror(-self.pid)}")

    def wait(self, timeout: float | None = None) -> int | None:
        """Return the exit code, None when it still runs after `timeout` seconds."""
        if self.poll() is None:
            readable(self.sentinel, timeout)
        return self.poll()

    def _reap(self) -> int | None:
        if not readable(self.sentinel, 0):
            return None
        answer = os.read(self.sentinel, ANSWER.size)
        # end of file: the server was killed, and the rank, which holds the other write end, has ended since
        code: int = ANSWER.unpack(answer)[0] if answer else UNKNOWN_STATUS
        return code

    def close(self) -> None:
        self._pipe.close()


_parents: list[_Server | None] = []
"""In a forked child: the server of its parent, kept so that its destructor does not complain."""


def _forget() -> None:
    global _server, _lock
    _parents.append(_server)
    _server, _lock = None, threading.Lock()


in_forked_child(_forget)
Finalize(None, stop_server, exitpriority=_AT_LAST)
