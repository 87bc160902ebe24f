"""What a rank writes, cut into whole lines."""

import codecs
import os
import time

from nbmp import platforms
from nbmp.launching.frontends import Chunk
from nbmp.launching.private import Descriptor
from nbmp.launching.written import terminal

READ_BYTES = 1 << 16
LINE_CHARACTERS = 24_000_000
"""A longer line is broken: it lies in memory until its end comes."""
LINES_CHARACTERS = 4_000_000
"""For the lines of several ranks together."""
ELLIPSIS = "\N{HORIZONTAL ELLIPSIS}"
"""Stands where a line was broken."""
SHOWN = 1000
"""Characters of a last line that are kept for a monitor."""


def longest_line(world_size: int) -> int:
    """Return the characters that the line of one of so many ranks may have."""
    return LINE_CHARACTERS if world_size <= 1 else LINES_CHARACTERS // world_size


class RankStream:
    """The reading end of one rank's stdout or stderr. Non-blocking.

    Bytes are decoded as they come, so a character that is cut by a read is not damaged; what is no UTF-8 shows as
    U+FFFD.
    """

    def __init__(self, rank: int, name: str, pipe: Descriptor, most: int = LINE_CHARACTERS) -> None:
        self.rank = rank
        self.label = ""
        self.name = name
        self.pipe = pipe
        self.last_line = ""
        self.wrote_at = 0.0
        """When `last_line` was written."""
        self.at_end = False
        """Whether nobody can write to it any more."""
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._most = most
        self._fixed: list[str] = []
        """Of the line without its end, what is not looked at again."""
        self._partial: list[str] = []
        self._partial_size = 0
        self._begun = ""
        self._style = ""
        os.set_blocking(pipe.fileno(), False)

    def read(self) -> tuple[list[Chunk], bool]:
        """Return the whole lines that one read completed, and whether there may be more now."""
        try:
            data = os.read(self.pipe.fileno(), READ_BYTES)
        except BlockingIOError:
            return [], False
        self.at_end = not data
        return self._add(self._decoder.decode(data)), not self.at_end

    def read_all(self) -> list[Chunk]:
        """Return the whole lines of all that is there now; not of what somebody who goes on writing adds meanwhile."""
        there = platforms.waiting_bytes(self.pipe.fileno())
        chunks, more = self.read()
        while more and (there := there - READ_BYTES) > 0:
            further, more = self.read()
            chunks += further
        return chunks

    def finish(self) -> list[Chunk]:
        """Return all that is left, a last line without its end included."""
        chunks = self.read_all()
        rest = self._decoder.decode(b"", final=True)
        if rest or self._partial_size:
            chunks += self._add(rest + "\n")
        return chunks

    def _add(self, text: str) -> list[Chunk]:
        head, end, tail = text.rpartition("\n")
        whole = ""
        if end:
            rest, self._style = terminal.finished("".join((*self._partial, head)), self._style)
            whole = "".join((*self._fixed, rest))
            self._fixed, self._partial, self._partial_size = [], [], 0
        if tail:
            self._partial.append(tail)  # joined once, at its end: it may be megabytes
            self._partial_size += len(tail)
            if "\r" in tail or "\b" in tail:  # or it goes on for days, written over again and again
                before = sum(map(len, self._partial))
                fixed, rest = terminal.divided("".join(self._partial), self._style)
                self._fixed += [fixed] if fixed else []
                self._partial = [rest]
                self._partial_size += len(fixed) + len(rest) - before
            if self._partial_size > self._most:
                return [*self._chunks(whole, end), *self._add(f"{ELLIPSIS}\n{ELLIPSIS}")]
        if not end and len(self._begun) == 2 * SHOWN and "\r" not in tail:
            self.wrote_at = time.monotonic()  # far behind what is shown of it
        else:
            self._note(tail if end else self._begun + tail, whole)
        return self._chunks(whole, end)

    def _chunks(self, whole: str, end: str) -> list[Chunk]:
        return [Chunk(self.rank, self.name, whole + "\n", self.label)] if end else []

    def _note(self, begun: str, whole: str) -> None:
        """Remember the last line: the one that has begun, or else the last whole one."""
        self._begun = terminal.unsettled(begun)[: 2 * SHOWN]
        shown = (terminal.settled(self._begun) or whole.rpartition("\n")[2])[:SHOWN]
        if shown.strip():
            self.last_line, self.wrote_at = terminal.uncoloured(shown), time.monotonic()
