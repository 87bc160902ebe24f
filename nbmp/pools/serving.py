"""The worker: every line here runs in a worker, which is a rank whose function is `serve`.

It takes a task, does it, sends its outcome, and lets go of everything that belongs to it before it takes the next.
What a task raises is an outcome. `sys.exit` in a task ends the worker; the pool sees that and fails the task.
"""

from collections.abc import Callable
from typing import Any

from nbmp.channels import Channel
from nbmp.errors import SharedMemoryError
from nbmp.launching.channel import plain
from nbmp.launching.relief import let_go
from nbmp.launching.written import stdio
from nbmp.messages import Message
from nbmp.pickling.parcel import Parcel
from nbmp.pickling.quick import snapshot
from nbmp.pools import messages
from nbmp.pools.messages import BROKEN, CALL, FUNCTION_NUMBER, KINDS, RAISED, READY, RETURNED, STARMAP, STOP, WorkerEnds
from nbmp.pools.overlay import Overlay
from nbmp.reports import RUNNING

_PLAIN = (type(None), bool, int, float, str, bytes)
INITIALIZING = "running its initializer"


def serve(rank: int, ends: WorkerEnds, inherited: messages.Initializer | None) -> None:
    """Be a worker until the pool says STOP."""
    stage = "unpickling its initializer"
    try:
        initializer, initargs = inherited or ends.functions.take()
        stage = INITIALIZING
        if initializer is not None:
            with Overlay(initializer):
                initializer(*initargs)
    except SystemExit:
        raise
    except BaseException as error:
        _report(ends.tasks, BROKEN, error, stage)
        return
    del inherited, initializer, initargs
    ends.tasks.send(plain(None), READY)
    functions = _Functions(ends.functions)
    while True:
        message = ends.tasks.receive()
        if message is None or message.kind % KINDS == STOP:
            return
        _do(message, functions, ends.tasks)
        del message


def _do(message: Message, functions: "_Functions", tasks: Channel) -> None:
    stage = "unpickling its task"
    try:
        work = _work(message, functions)
        stage = RUNNING
        value = work()
        del work
        stage = "pickling its result"
        parcel = _result(value)
    except BaseException as error:
        if isinstance(error, SystemExit) and stage == RUNNING:
            raise
        _report(tasks, RAISED, error, stage)
        return
    stdio.flush()
    try:
        tasks.send(parcel, RETURNED)
    except SharedMemoryError as error:
        _report(tasks, RAISED, error, "sending its result")


def _work(message: Message, functions: "_Functions") -> Callable[[], Any]:
    kind = message.kind % KINDS
    if kind == CALL:
        called, args, kwds = message.read()
        return lambda: called(*args, **kwds)
    number, items = message.read()
    function = functions.get(number)
    if kind == STARMAP:
        return lambda: [function(*item) for item in items]
    return lambda: [function(item) for item in items]


def _result(value: Any) -> Parcel:
    if type(value) in _PLAIN:
        return plain(value)
    return snapshot(value, name="result", to_main=True)


def _report(tasks: Channel, kind: int, error: BaseException, stage: str) -> None:
    let_go(error)
    from nbmp.launching.raising import raised

    stdio.flush()
    tasks.send(plain(raised(error, stage)), kind)


class _Functions:
    """The function of the latest call; earlier ones are let go."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._number = -1
        self._function: Any = None
        self._error: BaseException | None = None

    def get(self, number: int) -> Callable[..., Any]:
        """Return the function of this number; the error of unpickling it, raised again for each of its chunks."""
        while self._number != number:
            self._take()
        if self._error is not None:
            raise self._error
        function: Callable[..., Any] = self._function
        return function

    def _take(self) -> None:
        self._number, self._function, self._error = -1, None, None
        number = -1
        while (message := self._receive()).kind == FUNCTION_NUMBER:
            number = message.read()
        self._number = number
        try:
            self._function = message.read()
        except Exception as error:
            self._error = error

    def _receive(self) -> Message:
        message = self._channel.receive()
        if message is None:
            raise EOFError("the pool is gone")
        return message
