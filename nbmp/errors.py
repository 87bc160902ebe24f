"""Every error that nbmp raises.

    Exception
     ├─ ProcessException                a rank failed
     │   ├─ ProcessRaisedException      its function raised; `__cause__` is the original when it could travel
     │   └─ ProcessExitedException      it ended without an outcome: exit code or signal
     │       └─ WorkerExitedError       the worker of a pool, in the middle of a task
     ├─ TypeError, PicklingError
     │   └─ CannotTravelError           something cannot be sent to a rank; `path` says what
     ├─ MemoryError
     │   └─ SharedMemoryError           a segment is larger than the memory that is left
     ├─ OSError
     │   └─ OpenFilesError              no descriptor is left (EMFILE)
     ├─ TimeoutError (multiprocessing's)
     │   └─ LaunchTimeoutError          ranks were stopped because their time was up
     └─ RuntimeError
         ├─ BrokenMessageError          what arrived is no message: something else writes to its descriptor
         ├─ BrokenPoolError             the workers of a pool cannot begin their work
         ├─ CudaForkError               CUDA was initialised before a fork, and does not survive it
         ├─ DeviceError                 a CuPy array or event cannot be sent, received or placed on a GPU here
         ├─ MissingSegmentError         somebody has removed the file of a shared array or of a message
         ├─ StartError                  a rank could not be started
         ├─ StdinError                  a rank asked for keyboard input
         └─ UnsupportedPlatformError    not on this operating system

Names, attributes and messages (`msg`) of the three process exceptions are those of torch.multiprocessing, continued.
All of them survive pickling.
"""

import multiprocessing
from pickle import PicklingError
from typing import Any

from nbmp.reports import COLOURS, RankFailure, render, summary_line


class ProcessException(Exception):
    """A rank failed.

    Attributes
    ----------
    msg, error_index, error_pid
        The message, the rank that failed first, and its process id.
    failures : tuple of RankFailure
        Every rank that failed by itself, in rank order.
    world_size : int
        How many ranks there were.
    aftermath : str
        What became of the other ranks.
    stopped : str
        When none failed and some were stopped: which, and by whom.
    """

    def __init__(self, msg: str, error_index: int, error_pid: int | None):
        super().__init__(msg)
        self.msg = msg
        self.error_index = error_index
        self.error_pid = error_pid
        self.failures: tuple[RankFailure, ...] = ()
        self.world_size = 0
        self.aftermath = ""
        self.stopped = ""

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.msg, self.error_index, self.error_pid), self.__dict__

    def _render_traceback_(self, *_: Any) -> list[str]:
        """Return the lines that IPython shows in place of a traceback."""
        return render(type(self).__name__, self, colour=True)


class ProcessRaisedException(ProcessException):
    """The function of rank `error_index` raised; the message holds the rank's traceback.

    As text it begins with a line that says so, since torch's message `msg`, which follows, begins with a blank one.
    """

    def __str__(self) -> str:
        return summary_line(self) + self.msg if self.msg.startswith("\n") else self.msg


class ProcessExitedException(ProcessException):
    """Rank `error_index` ended by a signal or left with an exit code other than 0.

    Attributes
    ----------
    exit_code : int
        The code given to `sys.exit`, or minus the signal's number.
    signal_name : str or None
        Such as `"SIGKILL"`.
    """

    def __init__(
        self, msg: str, error_index: int, error_pid: int | None, exit_code: int, signal_name: str | None = None
    ):
        super().__init__(msg, error_index, error_pid)
        self.exit_code = exit_code
        self.signal_name = signal_name

    def __reduce__(self) -> tuple[Any, ...]:
        arguments = (self.msg, self.error_index, self.error_pid, self.exit_code, self.signal_name)
        return type(self), arguments, self.__dict__


class WorkerExitedError(ProcessExitedException):
    """A pool's worker ended in the middle of a task, which is lost; the pool has another worker and goes on.

    `error_index` is the number of the worker, counted from 0 by the pool; 0 is also a possible `exit_code`.
    """


class BrokenMessageError(RuntimeError):
    """What arrived is no message of nbmp, or is damaged; nothing of it was used, and the next one can be received.

    Only nbmp writes to what its messages pass through, so something has written to a descriptor that is not its own:
    closed, perhaps, and its number used again.
    """


class BrokenPoolError(RuntimeError):
    """The workers of a pool cannot begin their work: the message says why. Make another pool."""


class CannotTravelError(TypeError, PicklingError):
    """An object cannot be pickled, so it cannot be sent to another process.

    Attributes
    ----------
    path : str
        The place of the part that refuses: `args[1].model.lock`.
    """

    def __init__(self, msg: str, path: str = ""):
        super().__init__(msg)
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self), self.path)


class SharedMemoryError(MemoryError):
    """More shared memory was asked for than is left; the message has the figures."""


class OpenFilesError(OSError):
    """The limit of open files is reached, and nothing is left to close that was kept for reuse.

    The message has the limit. What was to be received is still there.
    """


class MissingSegmentError(RuntimeError):
    """The memory of an object that was received is gone: somebody has removed its file from `/dev/shm`.

    Only under the sharing strategy `file_system`, whose segments are files there.
    """


class CudaForkError(RuntimeError):
    """CUDA was initialised in a process before it forked, and does not survive that: use `spawn` or `forkserver`."""


class DeviceError(RuntimeError):
    """A CuPy array or event cannot be sent or received: its GPU is not visible here, its memory is gone, no driver.

    The message says which, and what to do.
    """


class LaunchTimeoutError(multiprocessing.TimeoutError):
    """Ranks did not end in the time they were given, and were stopped."""

    def _render_traceback_(self, *_: Any) -> list[str]:
        return [f"{COLOURS.red}{type(self).__name__}{COLOURS.off}: {self}"]


class StartError(RuntimeError):
    """A rank could not be started."""


class StdinError(RuntimeError):
    """A rank asked for keyboard input, which only the launching process has."""


class UnsupportedPlatformError(RuntimeError):
    """This operating system lacks what is needed."""
