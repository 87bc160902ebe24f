"""The view of shared memory under a cell: `nbmp.memory_monitor()`, `%mpshm`.

It moves while the notebook is used, and then becomes HTML that survives saving: when another one is shown, or some
minutes after the last cell has ended. Where nobody looks (nbclient, papermill) it is one table, as things are when its
cell runs. How it moves is the business of `live`, what it says that of `nbmp.monitoring.memory_view`."""

import os
import sys
import time
from types import ModuleType
from typing import Any

from IPython.core.interactiveshell import InteractiveShell
from IPython.display import display

from nbmp.launching import frontends
from nbmp.memory.janitor import trim
from nbmp.memory.leftovers import remove_leftovers
from nbmp.monitoring.holders import Holders
from nbmp.monitoring.memory_text import ROWS, view_table
from nbmp.monitoring.memory_view import memory_view
from nbmp.notebook import clicks, live, naming
from nbmp.notebook.memory_cells import Cells, cells_of
from nbmp.notebook.memory_render import html_view
from nbmp.notebook.output import channel_here

IDLE_SECONDS = 600.0
"""So long it moves after the last cell has ended."""
LOOK_SECONDS = 1.0
SHARE = 0.02
"""It looks once a second, or as seldom as takes this part of a core."""

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
    """
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
    channel = channel_here(shell) if moves and _has_a_reader(shell) else None
    if channel is None:
        picture.look()
        display({"text/plain": picture.text(), "text/html": picture.html()}, raw=True)  # type: ignore[no-untyped-call]
        return
    _latest = picture
    live.load_widgets()
    live.Live(channel, picture).show()


def _has_a_reader(shell: Any) -> bool:
    """Return whether a person may look at the output while it moves. Programs that run notebooks say that nobody is
    there to answer a question."""
    return bool(getattr(getattr(shell, "kernel", None), "_allow_stdin", False))


class MemoryPicture:
    """The view, as `live.Live` shows it."""

    def __init__(self, shell: Any, cells: Cells, rows: int | None) -> None:
        self.is_over = False
        self._shell = shell
        self._cells = cells
        self._rows = rows
        self._holders = Holders("notebook" if hasattr(shell, "kernel") else "this process")
        self._next = 0.0
        self._html = self._text = ""
        self._can_trim = self._can_clean = False
        self._frame: Any = None
        self._buttons: tuple[Any, Any] | None = None

    def look(self) -> None:
        if time.monotonic() < self._next and not self.has_ended():
            return
        begun = time.thread_time()
        self._holders.look(naming.names(self._shell))
        view = memory_view(_names(self._shell), self._holders, self._cells.made_in)
        self._html = html_view(view, self._rows, time.strftime("as of %H:%M:%S") if self.has_ended() else "")
        self._text = view_table(view, self._rows)
        self._can_trim, self._can_clean = view.own_cached > 0, bool(view.leftovers)
        self._next = time.monotonic() + max(LOOK_SECONDS, (time.thread_time() - begun) / SHARE)

    def has_ended(self) -> bool:
        idle = 0.0 if self._cells.running else time.monotonic() - self._cells.used
        return self.is_over or idle > IDLE_SECONDS

    def html(self) -> str:
        return self._html

    def text(self) -> str:
        return self._text

    def widget(self, widgets: ModuleType) -> Any:
        self._frame = widgets.HTML(self._html)
        give_back = clicks.button(
            widgets, "Give cached back", self._give_back, tooltip="nbmp.trim(): free what is kept for the next messages"
        )
        clean = clicks.button(
            widgets, "Remove leftovers", self._clean, tooltip="free what sessions that died have left in /dev/shm"
        )
        self._buttons = give_back, clean
        row = widgets.HBox(self._buttons)
        box = widgets.VBox([self._frame, row])
        box.observe(lambda _: [widget.close() for widget in (self._frame, row, give_back, clean)], "comm")
        self.change()
        return box

    def change(self) -> None:
        self._frame.value = self._html  # traitlets sends it only if it is different
        assert self._buttons is not None
        give_back, clean = self._buttons
        give_back.disabled = not self._can_trim
        clean.layout.display = "" if self._can_clean else "none"

    def _give_back(self) -> None:
        trim()
        self._next = 0.0

    def _clean(self) -> None:
        remove_leftovers()
        self._next = 0.0


def _names(shell: Any) -> dict[str, object]:
    """Return the variables of the notebook, without what IPython keeps of outputs."""
    return {
        name: value for name, value in list(shell.user_ns.items()) if not name.startswith("_") and name not in IPYTHONS
    }


_latest: MemoryPicture | None = None
"""The one that moves."""


def _forget() -> None:
    global _latest
    _latest = None


os.register_at_fork(after_in_child=_forget)
