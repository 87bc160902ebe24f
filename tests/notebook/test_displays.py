"""Which places the displays of ranks take: without a kernel."""

from __future__ import annotations

from nbmp.launching.frontends import Chunk, Display
from nbmp.notebook.output.displays import CROWDED, DISPLAYS, DISPLAYS_OF_RANK, Displays


def html(number: int, own: str = "") -> Display:
    transient = {"display_id": own} if own else {}
    return Display("display_data", {"data": {"text/html": str(number)}, "metadata": {}, "transient": transient})


class Page:
    """What a person sees of `Displays`."""

    def __init__(self) -> None:
        self.displays = Displays()
        self.places: dict[str, str] = {}
        self.captions: list[Chunk] = []
        self.messages = 0

    def take(self, rank: int, message: Display, now: float = 0.0) -> None:
        self._see(self.displays.take(rank, message, now))

    def end(self) -> None:
        self._see(self.displays.at_end(1e9))

    def _see(self, shown: list[Display | Chunk] | list[Display]) -> None:
        for message in shown:
            if isinstance(message, Chunk):
                self.captions.append(message)
                continue
            self.messages += 1
            place = message.content["transient"]["display_id"]
            assert (place in self.places) == (message.kind == "update_display_data")
            self.places[place] = message.content["data"].get("text/html", "")


def test_beyond_the_allowance_the_last_display_of_each_rank_is_shown_in_one_place() -> None:
    page = Page()
    for number in range(2000):
        for rank in range(2):
            page.take(rank, html(number), number * 0.001)
    page.end()
    assert len(page.places) == DISPLAYS + 2
    assert list(page.places.values())[-2:] == ["1999", "1999"]
    assert [caption.text for caption in page.captions].count(CROWDED) == 2
    assert page.messages < DISPLAYS + 60


def test_a_rank_that_displays_late_has_its_own_first_ones() -> None:
    page = Page()
    for number in range(1000):
        page.take(0, html(number))
    for number in range(DISPLAYS_OF_RANK):
        page.take(1, html(number))
    page.end()
    assert list(page.places.values())[-DISPLAYS_OF_RANK:] == [str(number) for number in range(DISPLAYS_OF_RANK)]


def test_an_animation_is_no_flood() -> None:
    page = Page()
    for number in range(1000):
        page.take(0, Display("clear_output", {"wait": True}))
        page.take(0, html(number), number * 0.01)
    page.end()
    assert list(page.places.values()) == ["999"]


def test_the_place_of_the_last_display_can_be_updated_by_its_own_id_alone() -> None:
    page = Page()
    for number in range(DISPLAYS + 2):
        page.take(0, html(number, f"id {number}"))
    update = Display("update_display_data", html(-1, f"id {DISPLAYS + 1}").content)
    page.take(0, update)
    page.end()
    assert list(page.places.values())[-1] == "-1"
    page.displays.take(0, Display("update_display_data", html(-2, f"id {DISPLAYS}").content), 2e9)
    assert list(page.places.values())[-1] == "-1"
