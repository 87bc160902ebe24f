"""What crosses between the launching process and a rank, besides tasks and results. Plain data, pickled by name."""

import signal
from collections.abc import Callable
from typing import Any, NamedTuple

STACK_SIGNAL = int(getattr(signal, "SIGRTMAX", 64)) - 7
"""Asks a rank for the stacks of its threads. Not SIGUSR1 or SIGUSR2, which programs and job schedulers use."""
FAULT_SIGNAL = STACK_SIGNAL - 1
"""Asks one thread of a rank that is inside C code."""
END_OF_STACKS = "End of stacks\n"
"""Last of what a rank writes when it gets STACK_SIGNAL."""


class Setup(NamedTuple):
    """What a rank is told before its task."""

    rank: int
    world_size: int
    name: str
    """Of the process, as `multiprocessing.current_process().name`."""
    daemon: bool
    parent: tuple[str, int]
    """Name and pid of the launching process."""
    authkey: bytes
    environment: dict[str, str]
    """Of the launching process; a fork has it."""
    variables: dict[str, str]
    """Set besides."""
    seeds: "Seeds"
    rank_setup: str | None
    """See `nbmp.launching.frontends.Frontend`."""
    rank_builtins: dict[str, str]
    """Likewise."""
    is_watched: bool
    """Whether a table of ranks shows how far it is."""
    loggers: "tuple[LoggerSetup, ...]"
    warning_filters: "tuple[WarningFilter, ...]"
    cwd: str | None
    """Where to go; None when the launching process' folder is gone."""
    path: list[str]
    argv: list[str]
    start_method: str | None
    """What `set_start_method` has chosen."""
    is_process: bool
    """Whether it is no rank of a launch but a `nbmp.Process`: it can be interrupted and prints what it raises."""
    sharing: tuple[str, str | None]
    """See `nbmp.memory.strategy.Choice`."""
    board: Any
    """Descriptor of the rank board: a `TravellingFd` when it leaves, an `OwnedFd` when it arrives."""
    crash: Any
    """Likewise of the rank's stack file."""
    tracker: Any = None
    """Likewise of what leads to the launching process' resource tracker, if it has one."""


class Request(NamedTuple):
    """What the fork server is asked for: a rank with these descriptors (`TravellingFd`, which arrive as `OwnedFd`)."""

    threads: int | None
    channel: Any
    lifeline: Any
    stdout: Any
    stderr: Any
    status: Any


class Call(NamedTuple):
    """A task: what a rank calls, after its own number. The field names are what an error about pickling shows."""

    fn: Callable[..., Any]
    args: tuple[Any, ...]

    def run(self, rank: int) -> Any:
        """Call it; a TypeError of the call itself says how it was called."""
        try:
            return self.fn(rank, *self.args)
        except TypeError as error:
            if error.__traceback__ is not None and error.__traceback__.tb_next is None:  # it did not get into `fn`
                count = len(self.args)
                given = f"the rank and {count} argument{'' if count == 1 else 's'}"
                error.add_note(f"fn is called as fn(rank, *args): here with {given}")
            raise


class Seeds(NamedTuple):
    """Seeds for the global random generators of one rank."""

    python: int
    numpy: int
    numpy_used: bool
    """Whether the launching process has used `numpy.random`; if not, a rank that has not loaded it need not either."""


class HandlerSetup(NamedTuple):
    """One handler of a logger."""

    stream: str
    """`stdout` or `stderr`; empty for a file."""
    file: str
    encoding: str | None
    level: int
    format: str | None
    datefmt: str | None
    style: str


class LoggerSetup(NamedTuple):
    """How a logger of the launching process is set up; for ranks that do not inherit it."""

    name: str
    level: int
    propagate: bool
    disabled: bool
    handlers: tuple[HandlerSetup, ...]


class WarningFilter(NamedTuple):
    """One of `warnings.filters`."""

    action: str
    message: str
    category: str
    """Name of one of Python's own."""
    module: str
    line: int


class RawFrame(NamedTuple):
    """One frame of a traceback as the rank saw it; the launching process adds cell name and source."""

    filename: str
    line: int
    function: str
    source: str


class RawException(NamedTuple):
    """An exception as the rank saw it."""

    type_name: str
    message: str
    frames: tuple[RawFrame, ...]
    notes: tuple[str, ...]
    earlier: "RawException | None"
    is_cause: bool


class Raised(NamedTuple):
    """A rank's function raised."""

    stage: str
    when: float
    exception: RawException
    text: str
    pickled: bytes | None
    """The exception itself, None when it cannot travel. A pickle in the message, so that reading it may fail alone."""
