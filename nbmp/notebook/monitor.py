"""The table of ranks under a cell, moving while they run.

    main thread           `watch` shows the table when the ranks were started; `settle`, after each cell,
                          gives the tables of ended ranks their last form, before the front end hears that
                          the cell is done
    nbmp-widget-updater   one thread for all tables; takes snapshots and changes what is shown, `RATE` times a
                          second at most and only when something changed; ends when the last table is final

While it moves it is an `HTML` widget (a control that ipywidgets 7.7 has), or an output updated by its display
id where ipywidgets is missing. At the end it is replaced by plain HTML and text, which survives saving. The
updater only sets the widget's value or sends to the table's own cell: it never prints, so nothing can land in
another cell."""

import contextvars
import os
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import ModuleType
from typing import TYPE_CHECKING, Any

from nbmp.monitoring import LaunchSnapshot, Sampler, text_table
from nbmp.notebook.output import CellChannel, channel_here
from nbmp.notebook.render import html_table

if TYPE_CHECKING:
    from nbmp.launching.context import ProcessContext

RATE = 5
WIDGET = "application/vnd.jupyter.widget-view+json"

_enabled_in: int | None = None
"""The process that loaded the extension. Ranks inherit the variable, and show nothing."""
_widgets: ModuleType | None = None
_is_hidden = contextvars.ContextVar("nbmp_monitor_hidden", default=False)


def enable() -> None:
    """Show a table at every launch of this process from now on. Imports ipywidgets now, so that no launch has
    to."""
    global _enabled_in, _widgets
    _enabled_in = os.getpid()
    with suppress(Exception):
        import ipywidgets

        _widgets = ipywidgets


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
        table = Table(channel, context)
        table.show()
        _updater.add(table)


def settle(*_: Any) -> None:
    """Give the tables whose ranks have ended their last form, now."""
    _updater.settle()


class Table:
    """The table of one launch, as an output of one cell."""

    def __init__(self, channel: CellChannel, context: "ProcessContext"):
        self._channel = channel
        self._sampler = Sampler(context)
        self._ended = context.finished
        self._display_id = uuid.uuid4().hex
        self._shown = ""
        self._widget: Any = None
        self._lock = threading.Lock()
        self.is_final = False

    def show(self) -> None:
        """Publish the table."""
        snapshot = self._sampler.snapshot()
        self._shown = html_table(snapshot)
        if _widgets is not None:
            with suppress(Exception):
                self._widget = _widgets.HTML(self._shown)
        self._publish("display_data", snapshot)

    def refresh(self) -> None:
        """Bring it up to date, or into its last form when the ranks have ended."""
        with self._lock:
            if self.is_final:
                return
            has_ended = self._ended.is_set()  # asked first: the snapshot is then the last one
            snapshot = self._sampler.snapshot()
            if has_ended:
                self._finish(snapshot)
            else:
                self._change(snapshot)

    def refresh_if_ended(self) -> None:
        """Give it its last form, if the ranks have ended."""
        if self._ended.is_set():
            self.refresh()

    def _change(self, snapshot: LaunchSnapshot) -> None:
        html = html_table(snapshot)
        if html == self._shown:
            return
        self._shown = html
        if self._widget is not None:
            self._widget.value = html
        else:
            self._publish("update_display_data", snapshot)

    def _finish(self, snapshot: LaunchSnapshot) -> None:
        self.is_final = True
        self._shown = html_table(snapshot)
        widget, self._widget = self._widget, None
        self._publish("update_display_data", snapshot)
        if widget is not None:
            widget.close()

    def _publish(self, kind: str, snapshot: LaunchSnapshot) -> None:
        data: dict[str, Any] = {"text/plain": text_table(snapshot)}
        if self._widget is not None:
            data[WIDGET] = {"version_major": 2, "version_minor": 0, "model_id": self._widget.model_id}
        else:
            data["text/html"] = self._shown
        self._channel.send(kind, {"data": data, "metadata": {}, "transient": {"display_id": self._display_id}})


class _Updater:
    """Refreshes all tables from one thread, which lives as long as one of them is not final."""

    def __init__(self) -> None:
        self._tables: list[Table] = []
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._thread: threading.Thread | None = None

    def add(self, table: Table) -> None:
        with self._lock:
            self._tables.append(table)
            if self._thread is None:
                self._wake.clear()
                # The kernel's notion of the running cell is a context variable: the thread keeps this cell's.
                run = contextvars.copy_context().run
                self._thread = threading.Thread(target=run, args=(self._run,), name="nbmp-widget-updater", daemon=True)
                self._thread.start()

    def settle(self) -> None:
        """Finish what can be finished; when nothing is left, the thread is gone on return."""
        for table in list(self._tables):
            with suppress(Exception):
                table.refresh_if_ended()
        with self._lock:
            thread = self._thread if all(table.is_final for table in self._tables) else None
        if thread is not None:
            self._wake.set()
            thread.join(timeout=2)

    def _run(self) -> None:
        while True:
            self._wake.wait(1 / RATE)
            for table in list(self._tables):
                try:
                    table.refresh()
                except Exception:  # a picture that fails is not tried again; the ranks run on
                    table.is_final = True
            with self._lock:
                self._tables = [table for table in self._tables if not table.is_final]
                if not self._tables:
                    self._thread = None
                    return


_updater = _Updater()
os.register_at_fork(after_in_child=lambda: globals().update(_updater=_Updater(), _enabled_in=None))
