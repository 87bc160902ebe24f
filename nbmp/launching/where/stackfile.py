"""The memory file that a rank's interpreter writes stacks to: the one of a fatal signal, and those that are asked for.

Rank and launching process share one open file, and so its offset: what the launching process clears is written from
the start again. Here are the launching process' operations; the rank has its descriptor only.
"""

import os
import threading

from nbmp import platforms
from nbmp.launching.private import Descriptor

BYTES = 1 << 20
"""How much of it is read."""
FATAL = "Fatal Python error"
"""What the stack of a fatal signal begins with."""


class StackFile:
    """Thread-safe: nothing is read or cleared by its number when that may stand for another file already."""

    def __init__(self) -> None:
        self._file = Descriptor(platforms.anonymous_file("nbmp-stacks"))
        self._using = threading.Lock()
        self._is_open = True

    @property
    def fd(self) -> int:
        return self._file.fd

    def fileno(self) -> int:
        return self._file.fileno()

    def clear(self) -> None:
        """Empty it, but for the stack of a fatal signal."""
        with self._using:
            if self._is_open and FATAL not in self._read():
                os.lseek(self.fileno(), 0, os.SEEK_SET)
                os.ftruncate(self.fileno(), 0)

    def text(self) -> str:
        """Return what is written; empty when it is closed."""
        with self._using:
            return self._read() if self._is_open else ""

    def fatal(self) -> str:
        """Return the stack of a fatal signal, empty without one."""
        return "".join(self.text().rpartition(FATAL)[1:]) if FATAL in self.text() else ""

    def close(self) -> None:
        with self._using:
            self._is_open = False
            self._file.close()

    def _read(self) -> str:
        return os.pread(self.fileno(), BYTES, 0).decode(errors="replace")
