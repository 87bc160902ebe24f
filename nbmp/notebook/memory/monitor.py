"""The view of shared memory under a cell: `nbmp.memory_monitor()`, `%mpshm`.

It moves while the notebook is used, and then becomes HTML that survives saving: when another one is shown, or some
minutes after the last cell has ended. Where nobody looks (nbclient, papermill) it is one table, as things are when its
cell runs. How it moves is the business of `live`, what it says that of `nbmp.monitoring.memory.view`."""

import operator
import os
import sys
import time
from types import ModuleType
from typing import Any

from IPython.core.interactiveshell import InteractiveShell
from IPython.display import display

from nbmp.launching import frontends
from nbmp.monitoring.memory.holders import Holders
from nbmp.monitoring.memory.text import ROWS, view_table
from nbmp.monitoring.memory.view import MemoryView, memory_view
from nbmp.notebook.live import pictures as live
from nbmp.notebook.magics import naming
from nbmp.notebook.memory.cells import Cells, cells_of
from nbmp.notebook.memory.panel import MemoryPanel
from nbmp.notebook.memory.render import html_view
from nbmp.notebook.output.channel import channel_here, is_unattended

IDLE_SECONDS = 600.0
"""So long it moves after the last cell has ended."""
LOOK_SECONDS = 1.0
SHARE = 0.01
"""It looks once a second, or as seldom as takes this part of a core; and when a cell has begun or ended."""

IPYTHONS = ("In", "Out", "exit", "quit", "open", "get_ipython")


def memory_monitor(*, rows: int | None = ROWS, moves: bool = True) -> None:
    """Show what shared memory there is: arrays by the names of variables, where they were made and who has them mapped.

    In a notebook it is shown under the cell, and changes there at most once a second while the notebook is used: until
    another one is shown, or for ten minutes after the last cell has ended. Then it stays as it was. Elsewhere, and in
    a notebook that is run by a program, it is a table as of now. Blocks for some milliseconds.

    "Mapped" is what a process can reach: a forked rank has mapped all that there was when it was forked. A page takes
    memory from when it is first written to. What is "cached" is kept for the next message some seconds, and
    `nbmp.trim()` gives it back. `nbmp.memory_usage()` has all of it as data, by segments and pids.

    Parameters
    ----------
    rows
        So many arrays at most, the largest; None: all.
    moves
        False: show it as it is now, for good.

    Raises
    ------
    ValueError, TypeError
        When `rows` is no such number.
    """
    if rows is not None and operator.index(rows) < 0:
        raise ValueError(f"rows is a number of arrays, or None for all, not {rows}")
    shell: Any = InteractiveShell._instance
    if shell is None or isinstance(frontends.current(), frontends.PlainFrontend):  # a script, or a rank
        holders = Holders()
        holders.look({})
        print(view_table(memory_view(vars(sys.modules["__main__"]), holders), rows))
        return
    global _latest
    if _latest is not None:
        _latest.is_over = True
    picture = MemoryPicture(shell, cells_of(shell), rows)
    channel = channel_here(shell) if moves and not is_unattended(shell) else None
    if channel is None:
        picture.is_over = True
        picture.look()
        display({"text/plain": picture.text(), "text/html": picture.html()}, raw=True)  # type: ignore[no-untyped-call]
        return
    _latest = picture
    live.load_widgets()
    live.Live(channel, picture).show()


class MemoryPicture:
    """The view, as `live.Live` shows it."""

    def __init__(self, shell: Any, cells: Cells, rows: int | None) -> None:
        self.is_over = False
        self._shell = shell
        self._cells = cells
        self._rows = rows
        self._holders = Holders("notebook" if hasattr(shell, "kernel") else "this process")
        self._looked = self._next = 0.0
        self._shown: MemoryView | None = None
        """What the widgets show."""
        self._state = ""
        self.panel: MemoryPanel | None = None

    def look(self) -> None:
        if not self._is_due() and not self.has_ended():
            return
        self._looked, begun = time.monotonic(), time.thread_time()
        self._holders.look(naming.names(self._shell))
        names, spare = _names(self._shell), _outputs(self._shell)
        self._view = memory_view(names, self._holders, self._cells.made_in, spare)
        self._state = time.strftime("as of %H:%M:%S") if self.has_ended() else ""
        self._next = self._looked + max(LOOK_SECONDS, (time.thread_time() - begun) / SHARE)

    def _is_due(self) -> bool:
        since = time.monotonic() - self._looked
        return time.monotonic() >= self._next or (since >= LOOK_SECONDS and self._cells.used > self._looked)

    def has_ended(self) -> bool:
        idle = 0.0 if self._cells.running else time.monotonic() - self._cells.used
        return self.is_over or idle > IDLE_SECONDS

    def html(self) -> str:
        return html_view(self._view, self._rows, self._state)

    def text(self) -> str:
        return view_table(self._view, self._rows)

    def name(self) -> str:
        return "view of shared memory"

    def widget(self, widgets: ModuleType) -> Any:
        self.panel = MemoryPanel(widgets)
        self.change()
        return self.panel.box

    def change(self) -> None:
        if self.panel is not None and self._shown is not self._view:
            self._shown = self._view
            self.panel.change(self._view, self._rows)


def _names(shell: Any) -> dict[str, object]:
    """Return the variables of the notebook, without what IPython keeps of outputs."""
    return {
        name: value for name, value in list(shell.user_ns.items()) if not name.startswith("_") and name not in IPYTHONS
    }


def _outputs(shell: Any) -> dict[str, object]:
    """Return what IPython keeps of outputs, which is how an array outlives its variable unnoticed."""
    kept = shell.user_ns.get("Out")
    return {f"Out[{number}]": value for number, value in list(kept.items())} if type(kept) is dict else {}


_latest: MemoryPicture | None = None
"""The one that moves."""


def _forget() -> None:
    global _latest
    _latest = None


os.register_at_fork(after_in_child=_forget)
