"""Notebooks that a program runs, and ranks in the background of them: their pictures, brought up to date at each cell.

Such a program (see `channel`) drops a change that comes between two cells, or after the last one. So all pictures that
moved on after their own cell are sent once more at the end of each cell. They are no widgets there: nobody would click,
and a saved one is dead.
"""

import sys
from typing import Any

from nbmp.notebook.live import pictures as live
from nbmp.notebook.output import channel


def enable(shell: Any) -> None:
    """Follow the cells of this shell."""
    disable(shell)
    shell.events.register("pre_run_cell", _begin)
    shell.events.register("post_run_cell", live.send_again)


def disable(shell: Any) -> None:
    """Follow them no more."""
    for event, hook in (("pre_run_cell", _begin), ("post_run_cell", live.send_again)):
        if hook in shell.events.callbacks[event]:
            shell.events.unregister(event, hook)


def _begin(*_: Any) -> None:
    channel.note_running(sys.stdout)
