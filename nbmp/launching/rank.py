"""The rank: every line here runs in a rank.

    started as         told by                        task
      a fork           what it inherited              inherited
      an interpreter   SETUP on its control channel   TASK on its control channel
      a served fork    (as an interpreter)

A rank leads its own process group, so the notebook's interrupt does not reach it: the launching process decides. It
is killed by the kernel when the launching process is gone (its lifeline). It writes to pipes of its own. Its last
message is its outcome; a rank that ends without one has been killed, or has left by `os._exit`.
"""

import atexit
import gc
import os
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from multiprocessing.process import current_process
from types import CoroutineType, FunctionType, GeneratorType
from typing import TYPE_CHECKING, Any, NoReturn

from nbmp import platforms
from nbmp.channels import Channel
from nbmp.errors import CannotTravelError
from nbmp.feeder import when_waiting
from nbmp.launching import board, default_method, ending, frontends, onuse, seeds, tracker
from nbmp.launching.bars import tqdms
from nbmp.launching.board import Row
from nbmp.launching.channel import EXITED, RAISED, RETURNED, SHOWN, plain
from nbmp.launching.messages import Call, Setup
from nbmp.launching.process import RankProcess
from nbmp.launching.relief import let_go
from nbmp.launching.where.answering import answer
from nbmp.launching.written import loggers, stdio
from nbmp.memory import strategy
from nbmp.memory.descriptors import own
from nbmp.memory.segment import Segment
from nbmp.pickling.parcel import Parcel
from nbmp.reports import RUNNING

if TYPE_CHECKING:
    from nbmp.launching.frontends import Display
    from nbmp.launching.plan import Plan
    from nbmp.launching.quiet import Quiet

_FAILED = 1
_PLAIN = (type(None), bool, int, float, str, bytes)


def forked(plan: "Plan", plans: "Sequence[Plan]", signals: set[int], moment: "Quiet") -> NoReturn:
    """Be the rank of `plan`, in the forked child. `signals` is the mask to go back to once interrupts are handled."""
    code = _FAILED
    try:
        moment.be_alone()
        gc.freeze()  # what is inherited is no garbage of the rank's: to look for some in it would copy all of it
        os.setpgid(0, 0)
        for other in plans:
            if other is not plan:
                other.ends.close()
                other.crash.close()
        ends = plan.ends
        os.dup2(ends.stdout.fileno(), 1)
        os.dup2(ends.stderr.fileno(), 2)
        ends.stdout.close()
        ends.stderr.close()
        ending.forget_inherited()
        rank = _Rank(plan.process, plan.setup, ends.channel, Row(plan.board, plan.setup.rank), plan.task)
        rank.settle(ends.lifeline.fileno(), plan.crash.fileno(), signals)
        rank.adopt_environment()
        code = rank.live(ends.lifeline.fileno())
    finally:
        _leave(code)


def spawned(channel_fd: int, lifeline: int, keep: object = None) -> NoReturn:
    """Be a rank in a process that has inherited nothing but two descriptors. `keep` is kept alive with it."""
    code = _FAILED
    try:
        channel = Channel.of_fd(channel_fd)
        os.set_inheritable(channel_fd, False)
        os.set_inheritable(lifeline, False)
        message = channel.receive()
        if message is None:
            os._exit(_FAILED)
        setup: Setup = message.read()
        process = RankProcess(name=setup.name, daemon=setup.daemon)
        process._adopt(setup.parent, setup.authkey)
        if setup.tracker is not None:
            tracker.share(setup.tracker.detach())
        rank = _Rank(process, setup, channel, Row(Segment(own(setup.board.detach())), setup.rank), None)
        rank.settle(lifeline, setup.crash.detach(), set())
        rank.adopt_interpreter()
        rank.adopt_environment()
        code = rank.live(lifeline)
    finally:
        _leave(code)


class _Rank:
    def __init__(
        self, process: RankProcess, setup: Setup, channel: Channel, row: Row, task: Callable[[int], Any] | None
    ) -> None:
        self._process = process
        self._setup = setup
        self._channel = channel
        self._inode = _inode(channel.fd)
        self._sending = threading.Lock()  # display() may come from any thread
        self._row = row
        self._task = task

    def settle(self, lifeline: int, crash: int, signals: set[int]) -> None:
        """Take hold of signals, lifeline and standard streams: before anything that can fail or last."""
        signal.signal(signal.SIGINT, signal.default_int_handler if self._setup.is_process else _ignore_interrupt)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, signals)
        platforms.arm_lifeline(lifeline, os.getpid())
        stdio.take_over()
        answer(crash)
        frontends.be_a_rank()
        board.be(self._row)
        tqdms.adopt(draw_lines=not self._setup.is_watched)

    def adopt_environment(self) -> None:
        """Environment variables and random generators, as the launching process says."""
        os.environ.update(self._setup.variables)
        seeds.apply(self._setup.seeds)

    def adopt_interpreter(self) -> None:
        """Environment, folder, path, arguments, sharing strategy and logging, which a fork inherits."""
        setup = self._setup
        inherited = dict(os.environ)
        for name in inherited.keys() - setup.environment.keys():
            del os.environ[name]
        os.environ.update(setup.environment.items() - inherited.items())
        if setup.cwd is not None:
            os.chdir(setup.cwd)
        sys.path[:] = setup.path
        default_method.inherit(setup.start_method)
        sys.argv[:] = setup.argv
        strategy.adopt(setup.sharing)
        onuse.lend(setup.rank_builtins)
        loggers.adopt(setup.loggers, setup.warning_filters)

    def live(self, lifeline: int) -> int:
        """Do the task and return the exit code."""
        tracker.keep_apart()
        if self._setup.rank_setup is not None:
            from nbmp.launching.onimport import when_imported

            when_imported("IPython.core.interactiveshell", self._set_up_frontend)
        return self._process._live(self._do, lifeline)

    def _do(self) -> None:
        rank = os.getpid()
        try:
            self._body()
        finally:
            if os.getpid() == rank:
                ending.end_executors()

    def _body(self) -> None:
        rank = os.getpid()
        stdio.refuse_input()
        stage = "unpickling its task"
        try:
            task = self._task or self._receive_task()
            self._row.running()
            stage = RUNNING
            value = task(self._setup.rank)
            if os.getpid() != rank:  # a child that the function forked: its outcome is not the rank's
                return
            self._row.ending()
            stage = "pickling its result"
            parcel = _result(value)
        except BaseException as error:
            if os.getpid() != rank:
                raise
            if isinstance(error, SystemExit) and stage == RUNNING:
                self._leave_with(_exit_code(error))
            let_go(error)
            from nbmp.launching.raising import raised

            self._row.ending()
            told = raised(error, stage)
            if self._setup.is_process or not self._has_channel():
                print(f"Process {current_process().name}:\n{told.text}", end="", file=sys.stderr)
            stdio.flush()
            self._send(RAISED, plain(told))
            raise SystemExit(_FAILED) from None
        stdio.flush()
        self._send(RETURNED, parcel)

    def _leave_with(self, code: int) -> NoReturn:
        """End as `sys.exit` asked; told apart from its low 8 bits, which are all that an exit status keeps."""
        self._row.ending()
        self._send(EXITED, plain(code))
        raise SystemExit((code & 0xFF) or int(code != 0)) from None

    def _receive_task(self) -> Callable[[int], Any]:
        message = self._channel.receive()
        if message is None:
            os._exit(_FAILED)
        self._process._unpickles = True
        try:
            call: Call = message.read()
        finally:
            self._process._unpickles = False
        _fill_main(call.fn)
        return call.run

    def _send(self, kind: int, parcel: Parcel) -> None:
        with self._sending:
            self._deliver(kind, parcel)

    def _deliver(self, kind: int, parcel: Parcel) -> None:
        if not self._has_channel():
            self._row.lost()
            stdio.flush()
            os._exit(_FAILED)
        try:
            self._channel.send(parcel, kind)
        except (BrokenPipeError, ConnectionResetError):
            os._exit(_FAILED)  # the launching process is gone, and with it whoever wanted to know

    def _has_channel(self) -> bool:
        """Return whether the descriptor still is the channel: the user's code may have closed it, and opened others."""
        try:
            return _inode(self._channel.fd) == self._inode
        except OSError:
            return False

    def _set_up_frontend(self) -> None:
        from importlib import import_module

        assert self._setup.rank_setup is not None
        module, _, function = self._setup.rank_setup.partition(":")
        getattr(import_module(module), function)(self._show)

    def _show(self, message: "Display") -> None:
        stdio.flush()
        with self._sending:
            self._deliver(SHOWN, plain(message))
            self._channel.receive()  # SEEN: what is printed from here on comes after it


def _tell_of_unread(is_so: bool) -> None:
    row = board.own_row()
    if row is not None:
        row.unread(is_so)


when_waiting.append(_tell_of_unread)


def _fill_main(function: Any) -> None:
    """Put what a function of `__main__` brought along where the standard library's pickler looks for it: by name."""
    if isinstance(function, FunctionType) and function.__module__ == "__main__":
        main = vars(sys.modules["__main__"])
        for name, value in {**function.__globals__, function.__name__: function}.items():
            if not name.startswith("__"):
                main.setdefault(name, value)


def _inode(fd: int) -> int:
    return os.fstat(fd).st_ino


def _result(value: Any) -> Parcel:
    if type(value) in _PLAIN:
        return plain(value)  # cloudpickle need not be loaded for these
    if isinstance(value, GeneratorType | CoroutineType):
        raise CannotTravelError(
            "result cannot travel to another process: it is a "
            + ("generator; list(...) of it can" if isinstance(value, GeneratorType) else "coroutine; asyncio.run it"),
            "result",
        )
    from nbmp.pickling.leaving import dumps

    return dumps(value, name="result", to_main=True, farewell=True)


def _exit_code(leaving: SystemExit) -> int:
    if leaving.code is None:
        return 0
    if isinstance(leaving.code, int):
        return int(leaving.code)
    print(leaving.code, file=sys.stderr)
    return _FAILED


def _ignore_interrupt(*_: object) -> None:
    """SIGINT is the launching process' business. A function, not SIG_IGN: programs that a rank runs get the default."""


def _leave(code: int) -> NoReturn:
    try:
        if sys.exc_info()[1] is not None:
            import traceback

            traceback.print_exc()
        atexit._run_exitfuncs()
        stdio.flush()
    finally:
        os._exit(code)
