"""A launch as the value of a cell: its monitor, where there is a front end for one."""

from typing import Any

from nbmp.launching.context import ProcessContext, SpawnContext
from nbmp.notebook.ranks import monitor

_KINDS = (ProcessContext, SpawnContext)


def enable(shell: Any) -> None:
    """Show launches in this shell by their monitor."""
    for kind in _KINDS:
        _formatter(shell).for_type(kind, lambda context: _show(shell, context))


def disable(shell: Any) -> None:
    """Take that back: IPython shows the text."""
    for kind in _KINDS:
        _formatter(shell).pop(kind, None)


def _show(shell: Any, context: ProcessContext) -> None:
    if not monitor.show(shell, context):
        raise NotImplementedError  # IPython goes on to the text


def _formatter(shell: Any) -> Any:
    return shell.display_formatter.ipython_display_formatter
