"""What the launching process knows of one rank."""

import time
from collections import deque
from typing import Any

from nbmp.channels import Channel
from nbmp.launching import board
from nbmp.launching.bars.progress import Progress, progress_of
from nbmp.launching.left import Notes
from nbmp.launching.messages import Raised
from nbmp.launching.private import Descriptor
from nbmp.launching.process import RankProcess
from nbmp.launching.where.stackfile import StackFile
from nbmp.launching.written.kept import KeptOutput
from nbmp.launching.written.lines import RankStream
from nbmp.reports import RUNNING, RankFailure


class RankRecord:
    """One rank of a launch. Written by the launch's supervisor thread, read by everybody."""

    def __init__(
        self,
        rank: int,
        row: board.Row,
        channel: Channel,
        lifeline: Descriptor,
        streams: tuple[RankStream, RankStream],
        crash: StackFile,
        output: KeptOutput,
    ) -> None:
        self.rank = rank
        self.shown_as = rank
        """Its number for a person: of a pool's worker its place in the pool."""
        self.channel = channel
        self.lifeline = lifeline
        """Write end: the rank dies when this is closed."""
        self.streams = streams
        self.crash = crash
        self.output = output
        """What it has written."""
        self.process: RankProcess | None = None
        self.stopping = False
        """Whether it was asked or forced to end by us."""
        self.ended = False
        """Whether it has ended and all it wrote has been shown."""
        self.read_since: float | None = None
        """Since when its outcome is being unpickled, which runs the user's code."""
        self.returned = False
        self.result: Any = None
        self.raised: Raised | None = None
        self.left_with: int | None = None
        """What its function gave to `sys.exit`."""
        self.failure: RankFailure | None = None
        self.cause: BaseException | None = None
        """The original exception, when it could travel."""
        self.last_errors: deque[str] = deque(maxlen=5)
        """Last lines of its stderr."""
        self._row = row
        self._started = time.monotonic()
        self._ended_at: float | None = None
        self._final_state: str | None = None

    def __repr__(self) -> str:
        return f"<rank {self.shown_as} (pid {self.pid}): {self.state}, {self.seconds:.1f} s>"

    @property
    def pid(self) -> int | None:
        return None if self.process is None else self.process.pid

    @property
    def has_gone(self) -> bool:
        """Whether its process has ended, which `ended` tells somewhat later."""
        process = self.process  # of a single process there is none any more when it has ended
        return self.ended or process is None or process._has_gone()

    @property
    def state(self) -> str:
        """One of `starting`, `running`, `done`, `raised`, `exited`, `killed`, `stopped`."""
        if self._final_state is not None:
            return self._final_state
        return "starting" if self._row.state() == board.STARTING else "running"

    @property
    def is_unread(self) -> bool:
        """Whether it waits at its exit, or did when it ended, until what it has put into queues is read."""
        return self._row.state() == board.UNREAD

    @property
    def notes(self) -> Notes:
        """Which locks it has, or had when it ended."""
        return self._row.notes

    @property
    def stage(self) -> str:
        """What it is doing, or was when it ended without telling of an exception."""
        if self.returned:
            waiting = "waiting for its queue to be read" if self.is_unread else "ending"
            return f"{waiting}, after its function had returned"
        if self.left_with is not None:  # by sys.exit
            return RUNNING
        stages = {board.STARTING: "starting or unpickling its task", board.ENDING: "pickling its result"}
        return stages.get(self._row.state(), RUNNING)

    @property
    def seconds(self) -> float:
        """How long it has been, or was, there."""
        return (self._ended_at or time.monotonic()) - self._started

    @property
    def last_line(self) -> str:
        """The last line it wrote."""
        return max(self.streams, key=lambda stream: stream.wrote_at).last_line

    @property
    def progress(self) -> Progress | None:
        """How far it is, or was at its end, by `nbmp.progress` or tqdm; None when it has shown no bar."""
        return progress_of(self._row, self._ended_at)

    @property
    def has_outcome(self) -> bool:
        """Whether its function came to an end, well or badly."""
        return self.returned or self.raised is not None or self.left_with is not None

    @property
    def has_lost_its_channel(self) -> bool:
        """Whether its function came to an end that it could not tell of, since it had closed the descriptor."""
        return self._row.state() == board.LOST

    def set_ended(self, state: str, failure: RankFailure | None) -> None:
        """It has ended, and all it wrote is shown."""
        self._ended_at = time.monotonic()
        self._final_state = state
        self.failure = failure
        self.ended = True
