"""How the failure of a task is told: what a worker reported, or became of it, as an exception of the pool's user."""

import pickle
import signal

from nbmp.errors import BrokenPoolError, ProcessRaisedException, WorkerExitedError
from nbmp.launching.describing import in_cells, report
from nbmp.launching.frontends import Frontend
from nbmp.launching.judging import signal_name
from nbmp.launching.messages import Raised
from nbmp.launching.record import RankRecord
from nbmp.reports import RUNNING, RankFailure


class RemoteTraceback(Exception):
    """The traceback of a task, as its worker saw it: the `__cause__` of the exception that the pool's user gets."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text

    def __str__(self) -> str:
        return f'\n"""\n{self.text}"""'


def task_error(raised: Raised, slot: int, pid: int | None, frontend: Frontend) -> BaseException:
    """Return what the user gets for a task that raised.

    The original exception with the worker's traceback as its cause, when it could travel and is an `Exception`;
    otherwise, and when the task never ran, a `ProcessRaisedException` with its type, message and traceback as text.
    """
    original, text = _original(raised), in_cells(raised.text, frontend.cell_name)
    if isinstance(original, Exception) and raised.stage == RUNNING:
        _set_cause(original, RemoteTraceback(text))
        return original
    while_doing = "" if raised.stage == RUNNING else f" while {raised.stage}"
    error = ProcessRaisedException(
        f"\n\n-- Worker {slot} of the pool got the following error{while_doing}:\n{text}", slot, pid
    )
    described = report(raised.exception, frontend)
    error.failures = (RankFailure(slot, pid, raised.when, raised.stage, 1, None, described, text),)
    error.__cause__ = original
    return error


def unread_error(error: BaseException, slot: int, pid: int | None) -> Exception:
    """Return what the user gets for a result that cannot be unpickled here: the error itself where it is one."""
    if isinstance(error, Exception):
        error.add_note("It was raised while a result of a pool's task was unpickled.")
        return error
    text = f"{type(error).__name__}: {error}"
    told = ProcessRaisedException(
        f"\n\n-- Worker {slot} of the pool had its result unpickled here, which raised:\n{text}", slot, pid
    )
    told.__cause__ = error
    return told


IN_A_TASK = "in the middle of a task, which is lost"


def exit_error(record: RankRecord, slot: int, when: str = IN_A_TASK) -> WorkerExitedError:
    """Return what the user gets for a task whose worker has ended."""
    failure = record.failure
    code = record.process.exitcode if record.process is not None else None
    if record.left_with is not None:
        code = record.left_with
    code = code or 0
    name = signal_name(-code) if code < 0 else None
    how = f"was ended by {name}" if name else f"left with exit code {code}"
    hint = failure.hint if failure is not None else ""
    if code == -signal.SIGKILL and "memory" not in hint:
        hint = f"It was short of memory, perhaps.\n{hint}"
    message = f"worker {slot} of the pool (pid {record.pid}) {how} {when}"
    error = WorkerExitedError("\n".join(filter(None, (message, hint))), slot, record.pid, code, name)
    if failure is not None:
        error.failures = (failure._replace(rank=slot),)
    return error


def initializer_error(raised: Raised) -> BrokenPoolError:
    """Return why a pool is broken whose initializer raised."""
    error = BrokenPoolError(
        f"a worker of the pool failed while {raised.stage}, and so would every other:\n{raised.text}"
    )
    error.__cause__ = _original(raised)
    return error


def start_error(cause: BaseException) -> BrokenPoolError:
    """Return why a pool is broken that cannot start or keep a worker."""
    error = BrokenPoolError(f"a worker of the pool could not begin its work: {cause}")
    error.__cause__ = cause
    return error


def _set_cause(error: BaseException, cause: BaseException) -> None:
    """Set it whatever the class of `error` says: that of a frozen dataclass refuses."""
    BaseException.__dict__["__cause__"].__set__(error, cause)


def _original(raised: Raised) -> BaseException | None:
    if raised.pickled is None:
        return None
    try:
        error = pickle.loads(raised.pickled)
    except BaseException:  # it travels one way only; its text is there
        return None
    return error if isinstance(error, BaseException) else None
