"""Pictures that fail while they move, and widgets that somebody closes. No kernel here."""

from __future__ import annotations

from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("IPython")

from nbmp.notebook.live import pictures
from nbmp.notebook.live.style import buttons, html, layout


class Picture:
    """What fails where it is told to."""

    def __init__(self) -> None:
        self.failing: set[str] = set()
        self.looks = 0
        self.ended = False
        self.shown = SimpleNamespace(model_id="a-model", closed=False)
        self.shown.close = lambda: setattr(self.shown, "closed", True)

    def _at(self, place: str) -> None:
        if place in self.failing:
            raise ZeroDivisionError(place)

    def look(self) -> None:
        self._at("look")
        self.looks += 1

    def has_ended(self) -> bool:
        return self.ended

    def html(self) -> str:
        self._at("html")
        return f"<p>look {self.looks}</p>"

    def name(self) -> str:
        return "Picture"

    def text(self) -> str:
        return f"look {self.looks}"

    def widget(self, widgets: ModuleType) -> Any:
        return self.shown

    def change(self) -> None:
        self._at("change")


class Channel:
    is_read = True

    def __init__(self) -> None:
        self.sent: list[dict[str, str]] = []

    def send(self, kind: str, content: dict[str, Any]) -> None:
        self.sent.append(content["data"])


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> tuple[pictures.Live, Picture, Channel]:
    """Return a picture that is shown by a widget, and refreshed by the test alone."""
    monkeypatch.setattr(pictures, "_updater", SimpleNamespace(add=lambda _: None))
    monkeypatch.setattr(pictures, "widgets", ModuleType("ipywidgets"))
    picture, channel = Picture(), Channel()
    made: Any = channel
    live = pictures.Live(made, picture)
    live.show()
    assert pictures.WIDGET in channel.sent[-1]
    return live, picture, channel


def test_widget_that_fails_is_closed_and_the_picture_moves_on_without(
    shown: tuple[pictures.Live, Picture, Channel],
) -> None:
    live, picture, channel = shown
    picture.failing = {"change"}
    for look in (2, 3):
        live.refresh()
        assert channel.sent[-1] == {"text/plain": f"look {look}", "text/html": f"<p>look {look}</p>"}
    assert picture.shown.closed
    picture.ended = True
    live.refresh()
    assert live.is_final
    assert channel.sent[-1]["text/plain"] == "look 4"


def test_picture_that_fails_says_so_in_its_last_form(shown: tuple[pictures.Live, Picture, Channel]) -> None:
    live, picture, channel = shown
    picture.failing = {"look"}
    live.refresh()
    live.refresh()
    assert live.is_final
    assert picture.shown.closed
    assert channel.sent[-1]["text/plain"] == f"look 1\n({pictures.FAILED.format('ZeroDivisionError')})"
    assert "ZeroDivisionError" in channel.sent[-1]["text/html"]


@pytest.mark.parametrize("ended", [False, True])
def test_picture_that_cannot_be_drawn_is_replaced_by_a_line(
    shown: tuple[pictures.Live, Picture, Channel], ended: bool
) -> None:
    live, picture, channel = shown
    picture.failing, picture.ended = {"html", "change"}, ended
    live.refresh()
    assert live.is_final
    assert picture.shown.closed
    assert channel.sent[-1] == {"text/plain": pictures.FAILED.format("ZeroDivisionError")}


def test_what_widgets_share_is_made_anew_after_all_were_closed() -> None:
    ipywidgets = pytest.importorskip("ipywidgets")

    def parts() -> list[Any]:
        button, text = buttons(ipywidgets, "x").Button(description="x"), html(ipywidgets, "x")
        return [button.layout, button.style, text.style, layout(ipywidgets, width="150px")]

    before = parts()
    assert all(now is then for now, then in zip(parts(), before, strict=True))
    ipywidgets.Widget.close_all()
    assert all(part.comm is None for part in before)
    assert all(part.comm is not None for part in parts())
    ipywidgets.Widget.close_all()
