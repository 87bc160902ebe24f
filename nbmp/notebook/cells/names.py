"""Which cell a source file is, and where the body of a cell magic stands in it.

IPython compiles a cell under a file name of its own. IPython 8 and newer can tell the cell's number from that
name; IPython 7.34, which hosted notebooks pin, cannot: there the name is computed again from the cells in the
history."""

import linecache
import re
import sys
from dataclasses import dataclass
from types import FrameType
from typing import Any


@dataclass(frozen=True)
class Place:
    """Where some code stands."""

    filename: str
    first_line: int
    """Line of the code's first line in that file."""


def cell_name(shell: Any, filename: str) -> str | None:
    """Return `"Cell In[k]"` for the file name of a cell, None for any other file."""
    if hasattr(shell.compile, "format_code_name"):
        found = shell.compile.format_code_name(filename)
        return " ".join(found) if found else None
    in_terminal = re.match(r"<ipython-input-(\d+)-", filename)
    number = in_terminal[1] if in_terminal else _numbers_from_history(shell).get(filename)
    return None if number is None else f"Cell In[{number}]"


def place_of_body(shell: Any, body: str) -> Place:
    """Return where the body of the cell magic that now runs stands, and let `linecache` know the cell as it
    was typed.

    Without a cell around it (a magic called by code, a cell that is not in the history) the body becomes a
    file of its own."""
    cell = _typed_cell(shell)
    filename = _calling_cell(shell)
    if cell is None or filename is None or not cell.rstrip().endswith(body.rstrip()):
        return Place(shell.compile.cache(body, _number(shell)), 1)
    lines_above = cell.rstrip()[: -len(body.rstrip())].count("\n")
    _remember(filename, cell)
    return Place(filename, lines_above + 1)


def _calling_cell(shell: Any) -> str | None:
    """Return the file name of the cell that is running, by the call stack."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if cell_name(shell, frame.f_code.co_filename):
            return frame.f_code.co_filename
        frame = frame.f_back
    return None


def _number(shell: Any) -> int:
    """Return the number of the cell that is running: some versions of IPython have counted on already."""
    return len(shell.history_manager.input_hist_raw) - 1 or int(shell.execution_count)


def _typed_cell(shell: Any) -> str | None:
    typed = shell.history_manager.input_hist_raw
    return str(typed[-1]) if len(typed) > 1 else None


def _remember(filename: str, text: str) -> None:
    entry = (len(text), None, [f"{line}\n" for line in text.split("\n")], filename)
    linecache.cache[filename] = entry
    kept = getattr(linecache, "_ipython_cache", None)  # IPython 7 puts its own entries back from here
    if kept is not None:
        kept[filename] = entry


_numbers: dict[str, int] = {}
_numbers_read = 1


def _numbers_from_history(shell: Any) -> dict[str, int]:
    global _numbers_read
    typed = shell.history_manager.input_hist_raw
    for number in range(_numbers_read, len(typed)):
        for raw in (typed[number], f"{typed[number]}\n"):  # the history drops a cell's last newline
            _numbers[shell.compile.get_code_name(raw, raw, number)] = number
    _numbers_read = max(len(typed), 1)
    return _numbers
