"""What a rank writes, cut into whole lines."""

import codecs
import os

from nbmp.launching.frontends import Chunk
from nbmp.launching.private import Descriptor

READ_BYTES = 1 << 16


class RankStream:
    """The reading end of one rank's stdout or stderr. Non-blocking.

    Bytes are decoded as they come, so a character that is cut by a read is not damaged; what is no UTF-8 shows as
    U+FFFD.
    """

    def __init__(self, rank: int, name: str, pipe: Descriptor) -> None:
        self.rank = rank
        self.name = name
        self.pipe = pipe
        self.last_line = ""
        self.at_end = False
        """Whether nobody can write to it any more."""
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._partial = ""
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
        """Return the whole lines of all that is there now."""
        chunks, more = self.read()
        while more:
            further, more = self.read()
            chunks += further
        return chunks

    def finish(self) -> list[Chunk]:
        """Return all that is left, a last line without its end included."""
        chunks = self.read_all()
        rest = self._partial + self._decoder.decode(b"", final=True)
        self._partial = ""
        return chunks + self._add(rest + "\n") if rest else chunks

    def _add(self, text: str) -> list[Chunk]:
        whole, end, self._partial = (self._partial + text).rpartition("\n")
        shown = self._partial.rpartition("\r")[2] or whole.rpartition("\n")[2].rpartition("\r")[2]
        if shown.strip():
            self.last_line = shown
        if not end:
            return []
        if "\r" in whole:  # a terminal would show what was written over it last
            whole = "\n".join(line.rstrip("\r").rpartition("\r")[2] for line in whole.split("\n"))
        return [Chunk(self.rank, self.name, whole + "\n")]
