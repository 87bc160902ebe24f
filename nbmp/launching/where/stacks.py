"""Where ranks are at one moment, as plain data that prints as a person reads it."""

from collections.abc import Iterator
from dataclasses import dataclass

from nbmp.reports import COLOURS, Frame, Palette, stack_lines


@dataclass(frozen=True)
class ThreadStack:
    """Where one thread of a rank is."""

    name: str
    """As `threading.Thread.name`, its first 15 bytes; `MainThread` for the thread that runs the rank's function."""
    native_id: int
    frames: tuple[Frame, ...]
    """Frames of the user's code, outermost first."""
    inside: Frame | None
    """The innermost frame, when that is a library's."""
    all_frames: tuple[Frame, ...]
    """The libraries' frames and nbmp's too, from the rank's function on."""
    waits_for: str = ""
    """What it waits for, in words: `a queue (get)`, `a barrier`, `a lock`; empty when it does not, as far as known."""
    unknown: str = ""
    """Why there are no frames; empty when it answered."""
    left_by: str = ""
    """Who left that behind, of the main thread: `that rank 1 of launch-2 had when it was stopped`; or empty."""

    @property
    def waits(self) -> str:
        """What it waits for, and who left that behind."""
        return f"{self.waits_for} {self.left_by}".strip() if self.waits_for else ""


@dataclass(frozen=True)
class RankStack:
    """Where one rank is."""

    rank: int
    pid: int | None
    state: str
    """See `RankRecord.state`."""
    seconds: float
    """How long the rank has been there."""
    threads: tuple[ThreadStack, ...]
    """The main thread first; those without Python code are left out."""
    unknown: str = ""
    """Why there are no threads: it has ended, it is stopped, it does not answer."""
    kind: str = "rank"
    """`rank`, or `worker` of a pool."""

    @property
    def main(self) -> ThreadStack | None:
        """The thread that runs the rank's function, None without an answer."""
        return self.threads[0] if self.threads else None

    def place(self) -> str:
        """Return in a line where its main thread is in the user's code, and what it waits for."""
        main = self.main
        if main is None or not (main.frames or main.inside):
            return self.unknown or (main and main.unknown) or "not in its function"
        innermost = main.frames[-1] if main.frames else main.inside
        assert innermost is not None
        return f"{innermost.place()}{_waits(main)}"

    def text(self, *, all_frames: bool = False, colour: bool = False) -> str:
        """Return it as lines of text; with `all_frames` those of libraries, nbmp and the interpreter too."""
        return "\n".join(_rank(self, all_frames, COLOURS if colour else Palette()))

    def __str__(self) -> str:
        return self.text()


@dataclass(frozen=True)
class Stacks:
    """Where the ranks of a launch, or the workers of a pool, are: `stacks[i]`, iteration, `len`; prints as text."""

    ranks: tuple[RankStack, ...]

    def __getitem__(self, index: int) -> RankStack:
        return self.ranks[index]

    def __iter__(self) -> Iterator[RankStack]:
        return iter(self.ranks)

    def __len__(self) -> int:
        return len(self.ranks)

    def text(self, *, all_frames: bool = False, colour: bool = False) -> str:
        """Return them as text, see `RankStack.text`."""
        return "\n".join(rank.text(all_frames=all_frames, colour=colour) for rank in self.ranks)

    def __str__(self) -> str:
        return self.text() if self.ranks else "no ranks"

    __repr__ = __str__


def _rank(rank: RankStack, all_frames: bool, ink: Palette) -> Iterator[str]:
    head = f"{ink.purple}{rank.kind} {rank.rank}{ink.off} (pid {rank.pid})"
    if rank.unknown:
        yield f"{head} {rank.unknown}"
        return
    main, *others = rank.threads
    yield f"{head} {rank.state} for {rank.seconds:.1f} s{_waits(main)}"
    yield from _thread(main, "  ", all_frames, ink)
    for thread in others:
        if not all_frames and not thread.frames and thread.name.startswith("nbmp"):
            continue
        yield f"  thread {ink.purple}{thread.name}{ink.off}{_waits(thread)}"
        yield from _thread(thread, "    ", all_frames, ink)


def _waits(thread: ThreadStack) -> str:
    return f", waits for {thread.waits}" if thread.waits else ""


def _thread(thread: ThreadStack, margin: str, all_frames: bool, ink: Palette) -> Iterator[str]:
    if thread.unknown:
        yield f"{margin}{thread.unknown}"
    elif all_frames:
        for frame in reversed(thread.all_frames):
            yield f"{margin}{frame.place()}"
            yield from (f"{margin}    {text.strip()}" for number, text in frame.source if number == frame.line)
    elif thread.frames:
        first, *rest = stack_lines(thread.frames, "", ink)
        yield margin + first.strip()
        yield from (f"{margin}  {line.strip()}" if "called from" in line else margin + line for line in rest)
        if thread.inside is not None:
            yield f"{margin}  inside {thread.inside.place()}"
    elif thread.inside is not None:
        yield f"{margin}inside {thread.inside.place()}, no code of yours"
    else:
        yield f"{margin}not in its function"
