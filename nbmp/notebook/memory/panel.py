"""The view of shared memory as a widget: what is replaced when it changes, and the buttons.

VBox         class `nbmp nbmp-memory nbmp-moves`
  HTML       style: never replaced
  HBox       class `head`
    HTML     title and totals
    Button   Remove leftovers (if there are any)
    Button   Give cached back
  HTML       the rows, once a second at most
"""

from types import ModuleType

from nbmp.memory.janitor import trim
from nbmp.memory.leftovers import remove_leftovers
from nbmp.monitoring.memory.view import MemoryView
from nbmp.notebook.live import clicks
from nbmp.notebook.live.style import STYLE, buttons, html, layout
from nbmp.notebook.memory.render import NAME, RULES, body_of, headline_of

HIDDEN = "nbmp-hidden"


class MemoryPanel:
    """One view. Made by the main thread, then used by the updater."""

    def __init__(self, widgets: ModuleType) -> None:
        self._head_text, self._body, style = html(widgets), html(widgets), html(widgets, STYLE + RULES)
        made = buttons(widgets)
        self.give_back = clicks.button(
            made, "Give cached back", trim, tooltip="nbmp.trim(): free what is kept here for the next messages"
        )
        self.clean = clicks.button(
            made,
            "Remove leftovers",
            remove_leftovers,
            tooltip="%mpshm --clean: free what sessions that died have left in /dev/shm",
        )
        head = widgets.HBox([self._head_text, self.clean, self.give_back], layout=layout(widgets))
        head.add_class("head")
        self.box = widgets.VBox([style, head, self._body], layout=layout(widgets))
        for name in ("nbmp", NAME, "nbmp-moves"):
            self.box.add_class(name)
        inside = (self._head_text, self._body, self.give_back, self.clean, head, style)
        self.box.observe(lambda _: [widget.close() for widget in inside], "comm")  # closing a box leaves what is in it

    def change(self, view: MemoryView, rows: int | None) -> None:
        """Show this view; traitlets sends only what is different."""
        self._head_text.value, self._body.value = headline_of(view, ""), body_of(view, rows)
        self.give_back.disabled = not view.own_cached
        change = self.clean.remove_class if any(left.bytes for left in view.leftovers) else self.clean.add_class
        change(HIDDEN)
