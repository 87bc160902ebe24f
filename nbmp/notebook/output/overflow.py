"""What a launch writes beyond what a browser can take: counted, and the last lines shown in an output that moves.

Measured in JupyterLab 4.6: each time a cell's text grows, all of it is rendered again, 0.1 s for 1,000 lines with tags.
10,000 lines that go on growing slowly stop the browser for minutes. So a launch has an allowance of lines; from then on
there is one output, of a bounded size, changed in place:

    … 4,963,200 lines of 16 ranks held back: nbmp.output(rank, launch=3)
    [2] step 812        the last lines of all ranks, in the order of time,
    ⋮                   and the last ones of each rank that has ended
    [0] done

All here is plain data.
"""

from collections import deque
from collections.abc import Callable, Iterable, Mapping

from nbmp.launching.frontends import Chunk

LINES = 8_000
"""Allowance of a launch. A line of more than `LINE` characters counts as several ..."""
LINE = 200
SURE_LINES = 4_000
"""... but so many lines are shown in any case, if they have less than `SURE_CHARACTERS` together."""
SURE_CHARACTERS = 4 << 20

LAST_LINES = 20
LAST_LINES_OF_RANK = 3
SHOWN_OF_LINE = 2_000
"""Characters of a last line that are shown; the rest is in `nbmp.output`."""

GAP = "\N{VERTICAL ELLIPSIS}\n"


class Allowance:
    """How many lines of a launch go to the cell's text."""

    def __init__(self) -> None:
        self.is_spent = False
        self._lines = self._characters = 0

    def split(self, chunk: Chunk) -> tuple[Chunk | None, Chunk | None]:
        """Return the lines that are allowed, and those that are not, one of them or both."""
        if not self.is_spent and self._allows(chunk.text.count("\n"), len(chunk.text)):
            return chunk, None
        if self.is_spent:
            return None, chunk
        lines = chunk.text.split("\n")[:-1]
        count = 0
        while self._allows(1, len(lines[count]) + 1):
            count += 1
        self.is_spent = True
        return _of(chunk, lines[:count]), _of(chunk, lines[count:])

    def _allows(self, lines: int, characters: int) -> bool:
        """Return whether so many more are allowed; they count then."""
        all_lines, all_characters = self._lines + lines, self._characters + characters
        is_sure = all_lines <= SURE_LINES and all_characters <= SURE_CHARACTERS
        if not is_sure and max(all_lines, all_characters / LINE) > LINES:
            return False
        self._lines, self._characters = all_lines, all_characters
        return True


class Overflow:
    """The lines of a launch that were not allowed any more."""

    def __init__(self, tagged: Callable[[Chunk], str]) -> None:
        self.lines = 0
        self._tagged = tagged
        self._ranks: dict[int, str] = {}
        """What they are called."""
        self._last: deque[tuple[int, str]] = deque(maxlen=LAST_LINES)
        """Number of a line, and the line."""
        self._last_of: dict[int, deque[tuple[int, str]]] = {}
        self._ended: set[int] = set()

    def add(self, chunk: Chunk) -> None:
        """Take further lines."""
        count = chunk.text.count("\n")
        self.lines += count
        self._ranks[chunk.rank] = chunk.label or f"rank {chunk.rank}"
        last = chunk.text[:-1].rsplit("\n", LAST_LINES)[-min(count, LAST_LINES) :]
        own = self._last_of.setdefault(chunk.rank, deque(maxlen=LAST_LINES_OF_RANK))
        for number, line in enumerate(last, self.lines - len(last)):
            shown = line if len(line) <= SHOWN_OF_LINE else f"{line[:SHOWN_OF_LINE]}\N{HORIZONTAL ELLIPSIS}"
            entry = number, self._tagged(chunk._replace(text=f"{shown}\n"))
            self._last.append(entry)
            own.append(entry)

    def end(self, rank: int) -> None:
        """This rank has ended: its last lines stay."""
        self._ended.add(rank)

    def text(self, launch: int) -> str:
        """Return what is shown."""
        ended = (entry for rank in self._ended & self._last_of.keys() for entry in self._last_of[rank])
        shown = sorted({*self._last, *ended})
        return told(self.lines - len(shown), self._ranks, launch) + "".join(_with_gaps(shown)).rstrip("\n")


def told(lines: int, ranks: Mapping[int, str], launch: int) -> str:
    """Return the line that says how many lines are held back, and where they are."""
    first, *others = sorted(ranks)
    whose = f"{1 + len(others)} ranks" if others else ranks[first]
    where = f": nbmp.output({'rank' if others else first}, launch={launch})" if launch else ""
    return f"\N{HORIZONTAL ELLIPSIS} {lines:,} line{'s' if lines != 1 else ''} of {whose} held back{where}\n"


def _with_gaps(entries: Iterable[tuple[int, str]]) -> Iterable[str]:
    before = None
    for number, line in entries:
        if before is not None and number != before + 1:
            yield GAP
        yield line
        before = number


def _of(chunk: Chunk, lines: list[str]) -> Chunk | None:
    return chunk._replace(text="\n".join(lines) + "\n") if lines else None
