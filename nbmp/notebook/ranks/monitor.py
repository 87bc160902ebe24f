"""The table of ranks under a cell, moving while they run.

`watch` shows it when ranks were started, `show` again elsewhere. What it looks like is in `render`, as a widget with
buttons in `panel`, how it moves and ends in `live`."""

import contextvars
import os
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import TYPE_CHECKING, Any

from nbmp.launching.last import last_launch
from nbmp.launching.registry import Group
from nbmp.monitoring import Sampler, text_table
from nbmp.monitoring.snapshots import ALIVE, ranks_text
from nbmp.notebook.live import pictures as live
from nbmp.notebook.output.channel import channel_here
from nbmp.notebook.ranks.actions import Actions
from nbmp.notebook.ranks.panel import Panel
from nbmp.notebook.ranks.render import Extras, html_table

if TYPE_CHECKING:
    from nbmp.launching.context import ProcessContext

_enabled_in: int | None = None
"""The process that loaded the extension. Ranks inherit the variable, and show nothing."""
_is_hidden = contextvars.ContextVar("nbmp_monitor_hidden", default=False)


def enable() -> None:
    """Show a table at every launch of this process from now on."""
    global _enabled_in
    _enabled_in = os.getpid()
    live.load_widgets()


def disable() -> None:
    """Show no table from now on."""
    global _enabled_in
    _enabled_in = None


@contextmanager
def hidden() -> Iterator[None]:
    """Show no table for launches inside."""
    token = _is_hidden.set(True)
    try:
        yield
    finally:
        _is_hidden.reset(token)


def is_on(shell: Any) -> bool:
    """Return whether a launch that begins now gets a table in the cell that runs now."""
    has_cell = channel_here(shell) is not None and hasattr(shell.display_pub, "pub_socket")
    return os.getpid() == _enabled_in and not _is_hidden.get() and has_cell


def watch(shell: Any, context: "ProcessContext") -> None:
    """Show a table of these ranks in the cell that runs now, if it is on."""
    if is_on(shell):
        show(shell, context)


def show(shell: Any, group: Group) -> bool:
    """Show a table of a launch or pool in the cell that runs now, unless it is there; False without a front end."""
    channel = channel_here(shell)
    if channel is None or not hasattr(shell.display_pub, "pub_socket"):
        return False
    if not live.is_shown(channel, lambda picture: isinstance(picture, RankTable) and picture.group is group):
        shown = live.Live(channel, RankTable(group))
        shown.show_last() if group.finished.is_set() else shown.show()
    return True


class RankTable:
    """The table of one launch or pool."""

    def __init__(self, group: Group) -> None:
        self.group = group
        self._sampler = Sampler(group)
        self._actions = Actions(group)
        self._panel: Panel | None = None

    def look(self) -> None:
        self._snapshot = self._sampler.snapshot()

    def has_ended(self) -> bool:
        return self.group.finished.is_set()

    def html(self) -> str:
        return html_table(self._snapshot, self._extras())

    def text(self) -> str:
        return text_table(self._snapshot)

    def name(self) -> str:
        return f"{ranks_text(self._snapshot)} ({self._snapshot.start_method})"

    def widget(self, widgets: ModuleType) -> Any:
        self._panel = Panel(widgets, self._snapshot, self._actions, self._extras())
        return self._panel

    def change(self) -> None:
        if self._panel is not None:
            self._panel.change(self._snapshot, self._extras())

    def _extras(self) -> Extras:
        alive = {rank.rank for rank in self._snapshot.ranks if rank.state in ALIVE}
        stacks = {rank: told for rank, told in self._actions.stacks.items() if rank in alive}
        return Extras(told_by=self._told_by(), stacks=stacks, where=self._actions.where_all)

    def _told_by(self) -> str:
        """Return code for all that a rank has written."""
        if self.group.kind != "launch":
            return ""
        if self.group.name:
            return f"{self.group.name}.output(RANK)"
        return "nbmp.output(RANK)" if last_launch() is self.group else f"nbmp.output(RANK, {self.group.number})"


os.register_at_fork(after_in_child=lambda: globals().update(_enabled_in=None))
