"""Buttons whose clicks come while a cell runs, wherever the front end can carry them.

    front end       sends a click to the kernel, at once
    kernel          takes it at once in a thread of a subshell: the front end's own (JupyterLab 4.4 and newer), or ours
                    (`subshells`); in ipykernel 6 the main thread takes it while it waits for ranks (`polling`).
                    Otherwise (other front ends with ipykernel 7.0 to 7.3; in ipykernel 6 a cell that does something
                    else than wait for ranks) it is taken when the cell has ended
    nbmp-click      one thread for each click: runs the action, and shows on the button if it failed

ipykernel 7.4 hands a message for a widget to the subshell that the widget was last changed from: to the main thread for
all that a cell shows, where it waits for the cell's end. `arrive_at_once` has it go where the front end sent it.

And a message for a widget is like a cell to IPython: hooks run before and after it. One of them shows and closes the
figures that are open, which belong to the cell that runs meanwhile. `arrive_at_once` keeps the hooks out.
"""

import contextvars
import threading
from collections.abc import Callable
from contextlib import suppress
from types import ModuleType
from typing import Any

from nbmp.notebook.live import subshells

LONGEST = 300
"""Of an error's text on a button."""


def button(
    widgets: ModuleType,
    label: str,
    action: Callable[[], object],
    *,
    tooltip: str = "",
    report: Callable[[str], object] | None = None,
) -> Any:
    """Return a new Button of ipywidgets that calls `action()` when it is clicked.

    The action runs in a thread of its own, at once where the front end can carry a click while a cell runs, else when
    the cell has ended; until it returns the button is disabled, so that it never runs twice at a time. It may take as
    long as it likes, may end ranks, ask for their stacks, and set traits of widgets. It must not print or `display`:
    that lands in whatever cell is the latest, or nowhere.

    Parameters
    ----------
    widgets
        ipywidgets.
    tooltip
        What the button does, in a line.
    report
        Called with a line of text when the action raises, and with "" when it is run again. None: the button itself
        turns red, with the error as its tooltip.
    """
    made = widgets.Button(description=label, tooltip=tooltip)
    show = report or _on_button(made, tooltip)
    context = contextvars.copy_context()  # has the cell that runs now, which what the action changes then belongs to
    made.on_click(lambda _: _click(made, action, show, context.copy()))
    arrive_at_once(made)
    return made


def arrive_at_once(*shown: Any) -> None:
    """Have what a person does to these widgets handled while a cell runs, if the front end sends it then.

    Their handlers are then called in a thread that is not the main one, and must be quick: the next message waits.
    A handler must not print. Widgets inside a box are given on their own.
    """
    for widget in shown:
        comm = widget.comm
        if comm is None:
            continue
        with suppress(Exception):  # without it, clicks come when the cell has ended
            if hasattr(comm, "_reply_subshell_for"):
                comm._reply_subshell_for = _subshell_for
            comm.handle_msg = _Handler(comm)


def is_ours(comm: Any) -> bool:
    """Return whether this is the comm of a widget that was given to `arrive_at_once`."""
    return isinstance(comm.handle_msg, _Handler)


class _Handler:
    """Hands a message to the widget, and nothing more."""

    def __init__(self, comm: Any) -> None:
        self._comm = comm

    def __call__(self, message: Any) -> None:
        callback = self._comm._msg_callback
        if callback is not None:
            callback(message)


def _subshell_for(data: object, subshell: str | None) -> str | None:
    """Return the subshell that shall have a message, which the front end has sent to this one."""
    if subshell is not None:
        return subshell
    from ipykernel.kernelbase import Kernel

    return subshells.own(Kernel.instance())


def _click(made: Any, action: Callable[[], object], show: Callable[[str], object], context: Any) -> None:
    made.disabled = True
    run = (context.run, _run, made, action, show)
    threading.Thread(target=run[0], args=run[1:], name="nbmp-click", daemon=True).start()


def _run(made: Any, action: Callable[[], object], show: Callable[[str], object]) -> None:
    text = ""
    try:
        with suppress(Exception):
            show("")
        action()
    except BaseException as error:  # there is nobody above to catch it
        text = _line(error)
    finally:
        with suppress(Exception):
            made.disabled = False
        if text:
            with suppress(Exception):
                show(text)


def _line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    text = f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
    return text if len(text) <= LONGEST else f"{text[:LONGEST]} ..."


def _on_button(made: Any, tooltip: str) -> Callable[[str], object]:
    def show(text: str) -> None:
        made.button_style = "danger" if text else ""
        made.tooltip = text or tooltip

    return show
