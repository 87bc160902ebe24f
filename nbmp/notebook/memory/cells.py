"""Which cell made a shared array: noted when the cell has ended, so that making one costs nothing.

    before a cell    what has come since the last one ended was made by no cell (a thread, a callback)
    after a cell     what has come since its start is its own

An array of a thread that runs meanwhile counts as the cell's. Small arrays lie together in one segment, in the order
in which they were made: of that is noted how far it was filled when a cell ended.
"""

import time
from typing import Any

from nbmp.memory.census import arena_mark, shared_segments
from nbmp.platforms.memoryfiles import Key

END = 1 << 62


class Cells:
    """The cells of one shell and the segments they made.

    Attributes
    ----------
    running : bool
        Whether a cell runs now.
    used : float
        When the last one began or ended, by `time.monotonic()`.
    """

    def __init__(self, shell: Any) -> None:
        self.running = True  # whoever asks for this is a cell, most likely
        self.used = time.monotonic()
        self._shell = shell
        self._is_numbered = True
        self._made: dict[Key, int | None] = dict.fromkeys(shared_segments())
        self._marks: dict[Key, list[tuple[int, int | None]]] = {}
        """Of segments with small arrays: up to which place, and by which cell."""
        self._arena: Key | None = None
        self._mark(None)

    def made_in(self, key: Key, offset: int) -> str:
        """Return `Cell In[3]` for what is at this place of a segment; empty when that is not known."""
        number = self._made[key] if key in self._made else self._running_number()
        if key in self._marks:
            marks = [cell for end, cell in self._marks[key] if offset < end]
            number = marks[0] if marks else self._running_number()
        return "" if number is None else f"Cell In[{number}]"

    def begin(self, info: Any = None) -> None:
        """A cell begins."""
        self._note(None)
        self.running, self.used = True, time.monotonic()
        self._is_numbered = getattr(info, "store_history", True)

    def end(self, result: Any = None) -> None:
        """It has ended."""
        self._note(getattr(result, "execution_count", None))
        self.running, self.used = False, time.monotonic()

    def _running_number(self) -> int | None:
        """Return the number of the cell that runs, which is the last one in the history. (The shell's count is one more
        in newer versions of IPython.)"""
        if not self.running or not self._is_numbered:
            return None
        return len(self._shell.history_manager.input_hist_raw) - 1

    def _note(self, cell: int | None) -> None:
        self._mark(cell)
        self._made = {key: self._made.get(key, cell) for key in shared_segments()}
        self._marks = {key: marks for key, marks in self._marks.items() if key in self._made}

    def _mark(self, cell: int | None) -> None:
        found = arena_mark()
        key, used = found if found is not None else (None, 0)
        if self._arena != key and self._arena in self._marks:
            self._marks[self._arena].append((END, cell))  # it has become full meanwhile
        self._arena = key
        marks = self._marks.setdefault(key, []) if key is not None else []
        if not marks or used > marks[-1][0]:
            marks.append((used, cell))


_cells: Cells | None = None


def cells_of(shell: Any) -> Cells:
    """Return the cells of this shell, noted from now on if they were not."""
    global _cells
    if _cells is None or _cells._shell is not shell:
        disable()
        _cells = Cells(shell)
        shell.events.register("pre_run_cell", _cells.begin)
        shell.events.register("post_run_cell", _cells.end)
    return _cells


def disable() -> None:
    """Note nothing from now on."""
    global _cells
    if _cells is not None:
        _cells._shell.events.unregister("pre_run_cell", _cells.begin)
        _cells._shell.events.unregister("post_run_cell", _cells.end)
    _cells = None
