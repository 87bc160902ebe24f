"""The table of ranks as a widget: what is replaced when, and the buttons.

    GridBox        class `nbmp live <key>`
      HTML         style and the switches of what folds: never replaced
      HBox         class `head`
        HTML       title, time, counts
        Text       which ranks (only of many)
        Button     Where are they?
        Button     Stop all
      HTML         the rows, five times a second at most
      Button ...   two for each rank, in line with its row by the grid (not of many)

All widgets share layouts and styles: that halves what one costs. The buttons, which cost most, are made by the updater
when the ranks have run for a moment; a launch does not wait for them, unless it is one of many ranks.
"""

import itertools
import time
from collections.abc import Callable, Collection
from dataclasses import replace
from types import ModuleType
from typing import Any

from nbmp.monitoring.snapshots import LaunchSnapshot, RankSnapshot
from nbmp.notebook.live import clicks
from nbmp.notebook.live import pictures as live
from nbmp.notebook.live.style import buttons, html, layout
from nbmp.notebook.ranks.actions import Actions
from nbmp.notebook.ranks.render import Extras, is_many, live_head, live_rows, live_style
from nbmp.notebook.ranks.selecting import selected

BUTTONS_AFTER = 0.4
"""Seconds; a launch that is over before has none."""

_keys = itertools.count(1)


class Panel:
    """One view of a launch's ranks. Made by the main thread, then used by the updater."""

    def __init__(self, widgets: ModuleType, snapshot: LaunchSnapshot, actions: Actions, extras: Extras) -> None:
        self._widgets = widgets
        self._actions = actions
        self._key = f"nbmp-{next(_keys)}"
        self._many = is_many(snapshot)
        self._made = time.monotonic()
        self._chosen: frozenset[int] | None = None
        self._text: Any = None
        self._buttons: list[_Changing] = []
        self._rows_shown = self._html(live_rows(snapshot, self._key, extras))
        self._head_shown = self._html(live_head(snapshot))
        self._switches = self._html(live_style(self._key, snapshot), "inputs")
        self._head = self._box(widgets.HBox, [self._head_shown], "head")
        kinds = ("nbmp", "nbmp-ranks", "live", self._key, *(["many"] if self._many else []))
        self._grid = self._box(widgets.GridBox, [self._switches, self._head, self._rows_shown], *kinds)
        if self._many:  # so many take a while to start, and have few buttons
            self._make_buttons(snapshot)

    @property
    def model_id(self) -> str:
        """The widget's, for a front end."""
        return str(self._grid.model_id)

    def change(self, snapshot: LaunchSnapshot, extras: Extras) -> None:
        """Show this snapshot."""
        if self._text is not None:
            self._chosen = selected(self._text.value, snapshot)
            extras = replace(extras, shown=self._chosen)
        self._head_shown.value = live_head(snapshot)  # traitlets sends it only if it is different
        self._rows_shown.value = live_rows(snapshot, self._key, extras)
        if not self._buttons and time.monotonic() > self._made + BUTTONS_AFTER:
            self._make_buttons(snapshot)
        for button in self._buttons:
            button.change()

    def close(self) -> None:
        """Take all of it off the kernel's list of widgets."""
        for widget in (*self._head.children, *self._grid.children, self._grid):
            widget.close()

    # -- buttons ------------------------------------------------------------------------------------------------------

    def _make_buttons(self, snapshot: LaunchSnapshot) -> None:
        self._head.children = (*self._head.children, *self._head_buttons())
        if not self._many:
            rows = [made for rank in snapshot.ranks for made in self._row_buttons(rank)]
            self._grid.children = (*self._grid.children, *rows)

    def _head_buttons(self) -> list[Any]:
        found = []
        if self._many:
            self._text = self._widgets.Text(
                placeholder="ranks 3, 8-11 or a word", layout=layout(self._widgets, width="150px")
            )
            clicks.arrive_at_once(self._text)
            found.append(self._text)
        actions = self._actions
        found.append(
            self._button(
                lambda: actions.where_are(self._chosen),
                "The Python stacks of all at this moment",
                lambda: "Hide stacks" if actions.where_all else "Where are they?",
            )
        )
        found.append(
            self._button(
                lambda: actions.stop(self._chosen if actions.can_stop_one else None),
                "SIGTERM now, SIGKILL when you press again, or after 30 s",
                self._stop_label,
                ranks=lambda: self._chosen,
            )
        )
        return found

    def _stop_label(self) -> str:
        word = "Kill" if self._actions.is_stopping(self._chosen) else "Stop"
        return f"{word} all" if self._chosen is None else f"{word} {len(self._actions.living(self._chosen))}"

    def _row_buttons(self, rank: RankSnapshot) -> list[Any]:
        actions, number = self._actions, rank.rank
        where = self._button(
            lambda: actions.where(number),
            f"Where is rank {number}? Its Python stack at this moment",
            lambda: "Hide" if number in actions.stacks else "Where?",
            "where",
            f"b{number}",
            ranks=lambda: [number],
        )
        if not actions.can_stop_one:
            return [where]
        stop = self._button(
            lambda: actions.stop([number]),
            f"Stop rank {number}: SIGTERM now, SIGKILL when you press again, or after 30 s",
            lambda: "Kill" if actions.is_stopping([number]) else "Stop",
            "stop",
            f"b{number}",
            ranks=lambda: [number],
        )
        return [where, stop]

    def _button(
        self,
        action: Callable[[], object],
        tooltip: str,
        label: Callable[[], str],
        *classes: str,
        ranks: Callable[[], Collection[int] | None] = lambda: None,
    ) -> Any:
        def act() -> None:
            try:
                action()
            finally:
                live.look_now()

        made = clicks.button(buttons(self._widgets, *classes), label(), act, tooltip=tooltip)
        self._buttons.append(_Changing(made, self._widgets, label, lambda: bool(self._actions.living(ranks()))))
        return made

    # -- boxes --------------------------------------------------------------------------------------------------------

    def _html(self, value: str, *classes: str) -> Any:
        return html(self._widgets, value, *classes)

    def _box(self, kind: Any, children: list[Any], *classes: str) -> Any:
        return kind(children, layout=layout(self._widgets), _dom_classes=classes)


class _Changing:
    """A button whose label follows what it would do, and which goes when there is nothing to be done."""

    def __init__(
        self, button: Any, widgets: ModuleType, label: Callable[[], str], is_useful: Callable[[], bool]
    ) -> None:
        self._button = button
        self._label = label
        self._is_useful = is_useful
        self._layouts = {True: layout(widgets), False: layout(widgets, display="none")}

    def change(self) -> None:
        wanted = self._layouts[self._is_useful()]
        if self._button.layout is not wanted:
            self._button.layout = wanted
        self._button.description = self._label()
