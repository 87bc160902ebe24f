"""The table of ranks under a cell, moving while they run.

`watch` shows it when ranks were started. What it looks like is in `render`, how it moves and ends in `live`."""

import contextvars
import os
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import TYPE_CHECKING, Any

from nbmp.monitoring import Sampler, text_table
from nbmp.notebook import live
from nbmp.notebook.channel import channel_here
from nbmp.notebook.render import html_table

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


def watch(shell: Any, context: "ProcessContext") -> None:
    """Show a table of these ranks in the cell that runs now, if there is a front end to show it."""
    if os.getpid() != _enabled_in or _is_hidden.get():
        return
    channel = channel_here(shell)
    if channel is not None and hasattr(shell.display_pub, "pub_socket"):
        live.Live(channel, RankTable(context)).show()


class RankTable:
    """The table of one launch."""

    def __init__(self, context: "ProcessContext") -> None:
        self._sampler = Sampler(context)
        self._ended = context.finished
        self._widget: Any = None

    def look(self) -> None:
        self._snapshot = self._sampler.snapshot()

    def has_ended(self) -> bool:
        return self._ended.is_set()

    def html(self) -> str:
        return html_table(self._snapshot)

    def text(self) -> str:
        return text_table(self._snapshot)

    def widget(self, widgets: ModuleType) -> Any:
        self._widget = widgets.HTML(self.html())
        return self._widget

    def change(self) -> None:
        self._widget.value = self.html()  # traitlets sends it only if it is different


os.register_at_fork(after_in_child=lambda: globals().update(_enabled_in=None))
