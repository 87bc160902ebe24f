"""What went wrong in a rank, as plain data: made in the launching process, kept on the exceptions, rendered on demand.

A report is complete when it is made (cell names and source lines included), so it renders the same anywhere, also after
pickling, and needs neither the rank nor the notebook any more.
"""

from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

RUNNING = "running its function"
"""The ordinary stage of a failure, not worth mentioning."""

OUTER_FRAMES = 8
"""How many of the frames around the innermost one are listed."""


class Frame(NamedTuple):
    """One frame of a stack."""

    file: str
    """As a person knows it: `Cell In[3]` or a path."""
    line: int
    function: str
    """`<module>` at the top of a cell or a script."""
    source: tuple[tuple[int, str], ...] = ()
    """A few (line number, text) around `line`; empty when the source is not to be had."""

    @property
    def is_top(self) -> bool:
        """Whether it is a cell or script itself, not a function; IPython 7 has a name of its own for a cell."""
        return self.function.startswith(("<module>", "<cell line"))

    def place(self) -> str:
        """Return `Cell In[3], line 12, in step`."""
        inside = "" if self.is_top else f", in {self.function}"
        return f"{self.file}, line {self.line}{inside}"


class ExceptionReport(NamedTuple):
    """One exception of a rank and what led to it."""

    type_name: str
    message: str
    frames: tuple[Frame, ...]
    """The user's frames, outermost first."""
    raised_in: Frame | None = None
    """The library frame that raised, when it was not the user's own."""
    notes: tuple[str, ...] = ()
    earlier: "ExceptionReport | None" = None
    """The exception that this one was raised from, or while handling."""
    is_cause: bool = False
    """Whether `earlier` is an explicit cause (`raise ... from`)."""

    def headline(self) -> str:
        """Return `ValueError: shapes do not match`."""
        return f"{self.type_name}: {self.message}" if self.message else self.type_name


class RankFailure(NamedTuple):
    """How one rank failed by itself."""

    rank: int
    pid: int | None
    when: float
    """Seconds of the system's monotonic clock."""
    stage: str
    """What it was doing: `running its function`, `unpickling its task`, ..."""
    exit_code: int | None = None
    signal_name: str | None = None
    report: ExceptionReport | None = None
    text: str = ""
    """The rank's own traceback as text."""
    stack: tuple[Frame, ...] = ()
    """Where it was when a fatal signal ended it: the user's frames, outermost first."""
    hint: str = ""
    """The likely reason, and the last lines of its stderr."""

    @property
    def summary(self) -> str:
        """One line: `ValueError: shapes do not match`, `signal SIGKILL`, `exit code 3`."""
        if self.report is not None:
            return self.report.headline().splitlines()[0]
        return f"signal {self.signal_name}" if self.signal_name else f"exit code {self.exit_code}"

    def kind(self) -> Hashable:
        """Return what is equal for ranks that failed of the same thing at the same place."""
        return (self.stage, self.exit_code, self.signal_name, self.report, self.stack, self.hint)


class Palette(NamedTuple):
    """ANSI codes, or nothing."""

    red: str = ""
    purple: str = ""
    green: str = ""
    bold: str = ""
    off: str = ""


COLOURS = Palette("\x1b[31m", "\x1b[35m", "\x1b[32m", "\x1b[1m", "\x1b[0m")


def summary_line(error: Any) -> str:
    """Return `rank 1 of 4 raised ValueError: too bad` for a `ProcessException`; empty when it has no report of that."""
    first = _first(error)
    if first is None:
        return ""
    of = f" of {error.world_size}" if error.world_size else ""
    return f"rank {first.rank}{of} raised {first.summary}"


def _first(error: Any) -> RankFailure | None:
    return next((failure for failure in error.failures if failure.rank == error.error_index), None)


def render(title: str, error: Any, *, colour: bool) -> list[str]:
    """Return the text of a `ProcessException` as a cell or a terminal shows it, a list of paragraphs."""
    ink = COLOURS if colour else Palette()
    first = _first(error)
    if first is None:  # made by hand, or by something that is not a launch
        lines = [f"{ink.red}{title}{ink.off}: {error.stopped or error}"]
        return [*lines, "", error.aftermath] if error.stopped and error.aftermath else lines
    of = f" of {error.world_size}" if error.world_size else ""
    what = _headline(first, ink)
    lines = [f"{ink.red}{title}{ink.off}: rank {first.rank}{of} (pid {first.pid}) {what}"]
    if first.stage != RUNNING:
        lines.append(f"It was {first.stage}.")
    if first.report is not None:
        described = list(exception_lines(first.report, f"rank {first.rank}", ink))
        lines += ["", *described] if described else []
    elif first.stack:
        lines += ["", *stack_lines(first.stack, f"rank {first.rank}", ink)]
    if first.hint:
        lines += ["", first.hint]
    others = [failure for failure in error.failures if failure.rank != error.error_index]
    if others:
        lines += ["", "Failed too:", *_others_lines(others, ink)]
    closing = [error.aftermath] if error.aftermath else []
    if error.__cause__ is not None:
        closing.append("The original exception is __cause__.")
    return [*lines, "", *closing] if closing else lines


def _headline(failure: RankFailure, ink: Palette) -> str:
    if failure.report is None:
        if failure.signal_name:
            return f"was ended by {ink.bold}{failure.signal_name}{ink.off}"
        return f"left with {ink.bold}exit code {failure.exit_code}{ink.off}"
    message = f": {failure.report.message}" if failure.report.message else ""
    return f"raised {ink.bold}{failure.report.type_name}{ink.off}{message}"


def _others_lines(others: list[RankFailure], ink: Palette) -> Iterator[str]:
    """Return a line for each way in which they failed, with the ranks that did."""
    same: dict[str, list[int]] = {}
    for other in others:
        same.setdefault(_short(other), []).append(other.rank)
    for text, ranks in same.items():
        yield f"  {ink.purple}{ranks_called(ranks)}{ink.off}  {text}"


def ranks_called(ranks: Sequence[int], noun: str = "rank") -> str:
    """Return `rank 1`, `ranks 1 and 3`, `ranks 0 to 7`, `ranks 0 to 4, 6 and 8`; the numbers alone without a noun."""
    words = [word for run in runs(ranks) for word in (map(str, run) if len(run) < 4 else [f"{run[0]} to {run[-1]}"])]
    text = words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
    return f"{noun}{'s' if len(ranks) > 1 else ''} {text}" if noun else text


def runs(numbers: Iterable[int]) -> list[list[int]]:
    """Return the numbers in order, those that follow each other in one list."""
    found: list[list[int]] = []
    for number in sorted(numbers):
        if found and number == found[-1][-1] + 1:
            found[-1].append(number)
        else:
            found.append([number])
    return found


def _short(failure: RankFailure) -> str:
    place = f"  ({failure.report.frames[-1].place()})" if failure.report and failure.report.frames else ""
    return failure.summary + place


def stack_lines(frames: tuple[Frame, ...], label: str, ink: Palette) -> Iterator[str]:
    """Return the text of a stack: the innermost frame with its source, then where that was called from."""
    margin = " " * len(label)
    label = f"{ink.purple}{label}{ink.off}"
    if frames:
        *outer, inner = frames
        yield f"{label}  {ink.green}{inner.place()}{ink.off}"
        width = max((len(str(number)) for number, _ in inner.source), default=0)
        for number, text in inner.source:
            if number == inner.line:
                yield f"{ink.red}---> {number:>{width}}{ink.off} {ink.bold}{text}{ink.off}"
            else:
                yield f"     {number:>{width}} {text}".rstrip()
        for frame in reversed(outer[-OUTER_FRAMES:]):
            yield f"{margin}  called from {frame.place()}"
        if len(outer) > OUTER_FRAMES:
            yield f"{margin}  ... and {len(outer) - OUTER_FRAMES} frames more"


def exception_lines(report: ExceptionReport, label: str, ink: Palette) -> Iterator[str]:
    margin = " " * len(label)
    yield from stack_lines(report.frames, label, ink)
    labelled = f"{ink.purple}{label}{ink.off}"
    lead = margin if report.frames else labelled
    if report.raised_in is not None:
        yield f"{lead}  raised in {report.raised_in.place()}"
        lead = margin
    for note in report.notes:
        yield f"{lead}  {note}"
        lead = margin
    if report.earlier is not None:
        yield ""
        yield f"{'caused by' if report.is_cause else 'while handling'} {report.earlier.headline()}"
        yield from exception_lines(report.earlier, "", ink)
