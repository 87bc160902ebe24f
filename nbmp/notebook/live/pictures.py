"""Outputs of a cell that move: how a picture of something gets under its cell, changes there, and stays when it ends.

    main thread           `Live.show` publishes; `settle`, after each cell, gives what has ended its last form, before
                          the front end hears that the cell is done
    nbmp-widget-updater   one thread for all; looks `RATE` times a second at most, less often if it costs much, and
                          changes what is shown when it is different; ends when the last one is final

While it moves it is a widget, or an output updated by its display id where ipywidgets is missing. At the end it is
replaced by plain HTML and text, which survives saving. A widget that fails is replaced by them at once, and a picture
that fails by a last form that says so. The updater only sets traits of widgets or sends to the
picture's own cell: it never prints, so nothing can land in another cell.
"""

import contextvars
import os
import threading
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from types import ModuleType
from typing import Any, Protocol

from nbmp.notebook.output.channel import CellChannel

MOVES = "still running when this was saved"
SEE = "Run the cell again to see it to its end"
FAILED = "not kept up to date any more: nbmp failed to show it ({})"

RATE = 5
SHARE = 0.015
"""Of a core, which the updater takes at most in the long run: with many ranks it looks less often."""
MEMORY = 0.8
"""How much the looks before count when the cost of a look is estimated; some of them measure more than others."""
LONGEST = 2.0
"""Seconds between two looks, at most."""
WIDGET = "application/vnd.jupyter.widget-view+json"

widgets: ModuleType | None = None
"""ipywidgets, once `load_widgets` has found it."""


def load_widgets() -> None:
    """Import ipywidgets, if it is there, so that no launch has to."""
    global widgets
    with suppress(Exception):
        import ipywidgets

        widgets = ipywidgets


class Picture(Protocol):
    """What is shown. `look` is called first each time, by one thread at a time; the others show what it has seen."""

    def look(self) -> None:
        """See how things are now."""

    def has_ended(self) -> bool:
        """Return whether the next look is the last one."""

    def html(self) -> str:
        """Return the whole as HTML: what is saved, and shown without widgets."""

    def text(self) -> str:
        """Return the whole as text, for terminals."""

    def name(self) -> str:
        """Return what it is a picture of, in some words."""

    def widget(self, widgets: ModuleType) -> Any:
        """Return a new widget that shows it."""

    def change(self) -> None:
        """Bring the widget up to date."""


class Live:
    """One picture, as an output of one cell."""

    def __init__(self, channel: CellChannel, picture: Picture) -> None:
        self.is_final = False
        self._channel = channel
        self._picture = picture
        self._display_id = uuid.uuid4().hex
        self._shown = ""
        self._failure = ""
        self._widget: Any = None
        self._lock = threading.Lock()

    def is_of(self, channel: CellChannel, is_meant: Callable[[Picture], bool]) -> bool:
        """Return whether this is under that cell, moves, and shows what is meant."""
        return not self.is_final and self._channel.is_same(channel) and is_meant(self._picture)

    def show_last(self) -> None:
        """Publish its last form at once: what it shows is over."""
        self.is_final = True
        self._picture.look()
        self._publish("display_data")

    def show(self) -> None:
        """Publish it, and keep it up to date from now on."""
        self._picture.look()
        if widgets is not None and self._channel.is_read:
            with suppress(Exception):
                self._widget = self._picture.widget(widgets)
        self._publish("display_data")
        _updater.add(self)

    def refresh(self) -> None:
        """Bring it up to date, or into its last form. Raises nothing: what it shows runs on without it."""
        with self._lock:
            if self.is_final:
                return
            try:
                self._refresh()
            except Exception as error:
                self._fail(error)

    @property
    def is_read(self) -> bool:
        """Whether a person may look at it."""
        return self._channel.is_read

    def send_again(self) -> None:
        """Send it once more."""
        with self._lock:
            if not self.is_final:
                self._picture.look()
            self._publish("update_display_data")

    def refresh_if_ended(self) -> None:
        """Give it its last form, if it is over."""
        if self._picture.has_ended():
            self.refresh()

    def _refresh(self) -> None:
        has_ended = self._picture.has_ended()  # asked first: the look is then the last one
        self._picture.look()
        if has_ended:
            self._finish()
        elif self._widget is not None:
            self._picture.change()
        elif self._picture.html() != self._shown:
            self._publish("update_display_data")

    def _finish(self) -> None:
        self.is_final = True
        self._publish_instead_of_widget()

    def _fail(self, error: Exception) -> None:
        """Go on without the widget; where it has none, show that it has failed, for the last time."""
        if self.is_final or self._widget is None:
            self._give_up(error)
            return
        try:
            self._publish_instead_of_widget()
        except Exception as further:
            self._give_up(further)

    def _give_up(self, error: Exception) -> None:
        self.is_final = True
        self._failure = FAILED.format(type(error).__name__)
        with suppress(Exception):
            self._publish("update_display_data")
            return
        with suppress(Exception):
            self._send("update_display_data", {"text/plain": self._failure})

    def _publish_instead_of_widget(self) -> None:
        widget, self._widget = self._widget, None
        try:
            self._publish("update_display_data")
        finally:
            if widget is not None:
                with suppress(Exception):
                    widget.close()

    def _publish(self, kind: str) -> None:
        data: dict[str, Any] = {}
        if self._widget is not None:
            data["text/plain"] = f"{self._picture.name()}: {MOVES}. {SEE}"  # the first form would be taken for the last
            data[WIDGET] = {"version_major": 2, "version_minor": 0, "model_id": self._widget.model_id}
        else:
            data["text/plain"] = self._picture.text()
            data["text/html"] = self._shown = self._picture.html()
        moves = MOVES if not self.is_final and not self._channel.is_read else ""
        for note in filter(None, (self._failure, moves)):
            data["text/plain"] += f"\n({note})"
            data["text/html"] += f'<div style="margin:2px 10px;font-size:12px;opacity:.7">{note}</div>'
        self._send(kind, data)

    def _send(self, kind: str, data: dict[str, Any]) -> None:
        self._channel.send(kind, {"data": data, "metadata": {}, "transient": {"display_id": self._display_id}})


def is_shown(channel: CellChannel, is_meant: Callable[[Picture], bool]) -> bool:
    """Return whether a picture for which `is_meant` is true moves under that cell."""
    return _updater.has(lambda live: live.is_of(channel, is_meant))


def send_again(*_: Any) -> None:
    """A cell is done: send all that moved on after its own cell once more, where a program runs the notebook."""
    _updater.send_again()


def look_now() -> None:
    """Bring everything up to date soon: somebody has pressed a button."""
    _updater.look_now()


def settle(*_: Any) -> None:
    """Give what has ended its last form, now."""
    _updater.settle()


class _Updater:
    """Refreshes all from one thread, which lives as long as one of them is not final."""

    def __init__(self) -> None:
        self._shown: list[Live] = []
        self._outlived: list[Live] = []
        """Those that moved when their own cell was done, where a program runs the notebook; not those whose last form a
        cell has sent."""
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._thread: threading.Thread | None = None

    def add(self, live: Live) -> None:
        with self._lock:
            self._shown.append(live)
            if self._thread is None:
                self._wake.clear()
                # The kernel's notion of the running cell is a context variable: the thread keeps this cell's.
                run = contextvars.copy_context().run
                self._thread = threading.Thread(target=run, args=(self._run,), name="nbmp-widget-updater", daemon=True)
                self._thread.start()

    def has(self, is_meant: Callable[[Live], bool]) -> bool:
        return any(map(is_meant, list(self._shown)))

    def send_again(self) -> None:
        moving = [live for live in list(self._shown) if not live.is_final and not live.is_read]
        self._outlived += [live for live in moving if live not in self._outlived]
        for live in list(self._outlived):
            if live.is_final:  # asked first: its last form may have come between two cells, and is sent once more
                self._outlived.remove(live)
            with suppress(Exception):
                live.send_again()

    def look_now(self) -> None:
        self._wake.set()

    def settle(self) -> None:
        """Finish what can be finished; when nothing is left, the thread is gone on return."""
        for live in list(self._shown):
            with suppress(Exception):
                live.refresh_if_ended()
        with self._lock:
            thread = self._thread if all(live.is_final for live in self._shown) else None
        if thread is not None:
            self._wake.set()
            thread.join(timeout=2)

    def _run(self) -> None:
        cost = 0.0
        while True:
            if self._wake.wait(min(max(1 / RATE, cost / SHARE), LONGEST)):
                self._wake.clear()
            begun = time.thread_time()
            for live in list(self._shown):
                live.refresh()
            cost = MEMORY * cost + (1 - MEMORY) * (time.thread_time() - begun)
            with self._lock:
                self._shown = [live for live in self._shown if not live.is_final]
                if not self._shown:
                    self._thread = None
                    return


_updater = _Updater()
os.register_at_fork(after_in_child=lambda: globals().update(_updater=_Updater()))
