"""The fork server: every line here runs in it. Single-threaded, and stays so: that is what makes its forks safe."""

import contextlib
import gc
import os
import select
import signal
import struct
import sys
from collections.abc import Sequence
from typing import NoReturn

from nbmp.channels import Channel
from nbmp.launching.messages import Request
from nbmp.launching.private import Descriptor, making
from nbmp.launching.rank import spawned
from nbmp.launching.threads import SERVER_THREADS, limited
from nbmp.messages import Message
from nbmp.pickling.arriving import OwnedFd

PRELOAD = (
    "numpy",
    "numpy.random",
    "cloudpickle",
    "threadpoolctl",
    "nbmp.memory.arrays",
    "nbmp.launching.raising",
    "nbmp.notebook.cells.body",
    "nbmp.pickling.leaving",
    "nbmp.pickling.rebuilding",
)
"""Loaded once here instead of in each rank."""

_ANSWER = struct.Struct("=q")


def serve(fd: int, preload: Sequence[str] = ()) -> None:
    """Fork a rank for each request until the launching process is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for module in (*PRELOAD, *preload):
        with contextlib.suppress(ImportError):
            __import__(module)
    gc.collect()
    gc.freeze()  # a collection in a rank does not touch, and so does not copy, what was loaded here
    _Server(Channel.of_fd(fd)).run()


class _Server:
    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._statuses: dict[int, int] = {}  # pid of a living rank -> write end of its status pipe
        self._wakeup, wakeup_write = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        signal.set_wakeup_fd(wakeup_write, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        self._inherited = (self._wakeup, wakeup_write)
        with making() as register:
            register(channel)

    def run(self) -> None:
        while True:
            ready, _, _ = select.select([self._channel.fileno(), self._wakeup], [], [])
            if self._wakeup in ready:
                os.read(self._wakeup, 4096)
                self._report_ended()
            if self._channel.fileno() in ready:
                self._answer()

    def _answer(self) -> None:
        """Take one request. Its descriptors are closed when this returns, with what a killed rank has not read."""
        message = self._channel.receive()
        if message is None:
            os._exit(0)
        request = _read(message)
        if request is None:
            print("nbmp's fork server: something has been written to its descriptor", file=sys.stderr)
        else:
            self._fork(request)

    def _fork(self, request: Request) -> None:
        status = request.status.detach()
        try:
            with limited(None if request.threads == SERVER_THREADS else request.threads):
                pid = os.fork()
                if pid == 0:
                    self._become_rank(request, status)
        except OSError as error:
            with contextlib.suppress(OSError):  # the launching process has given up on it
                os.write(status, _ANSWER.pack(-(error.errno or 1)))
            os.close(status)
            return
        with contextlib.suppress(OSError):
            os.setpgid(pid, pid)
        self._statuses[pid] = status
        with contextlib.suppress(OSError):  # the launching process has given up on it
            os.write(status, _ANSWER.pack(pid))

    def _become_rank(self, request: Request, status: int) -> NoReturn:
        try:
            os.setpgid(0, 0)
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            for fd in (*self._inherited, *self._statuses.values()):
                os.close(fd)
            os.dup2(request.stdout.fd, 1)
            os.dup2(request.stderr.fd, 2)
            os.close(request.stdout.detach())
            os.close(request.stderr.detach())
            with making() as register:  # kept open: end of file there means that the server and the rank are gone
                register(kept := Descriptor(status))
            spawned(request.channel.detach(), request.lifeline.detach(), kept)
        finally:
            os._exit(1)

    def _report_ended(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            fd = self._statuses.pop(pid, None)
            if fd is not None:
                with contextlib.suppress(OSError):
                    os.write(fd, _ANSWER.pack(os.waitstatus_to_exitcode(status)))
                os.close(fd)


def _read(message: Message) -> Request | None:
    """Return what is asked for; None when that is no request."""
    try:
        request = message.read()
    except Exception:
        return None
    is_one = isinstance(request, Request) and all(isinstance(end, OwnedFd) for end in request[1:])
    return request if is_one else None
