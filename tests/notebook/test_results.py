"""The value of a cell that ran in ranks: a list, shown richly when there is something to show."""

from __future__ import annotations

import pytest

from tests.notebook.kernels import Cell, Kernel

pytestmark = pytest.mark.may_keep("children")  # the module's kernel, which keeps a fork server

RICH = """
class Rich:
    def __init__(self, number): self.number = number
    def _repr_html_(self): return f'<b>number {self.number}</b>'
    def __repr__(self): return f'Rich({self.number})'
class Picture:
    def _repr_png_(self): return b'\\x89PNG\\r\\n\\x1a\\n'
    def __repr__(self): return '<Picture>'
"""


def data(cell: Cell) -> dict[str, str]:
    (result,) = cell.of("execute_result")
    found: dict[str, str] = result.content["data"]
    return found


def test_values_of_text_are_a_list_of_text(kernel: Kernel) -> None:
    assert data(kernel.run("%%mpspawn -n 2\n(rank, 'x')")) == {"text/plain": "[(0, 'x'), (1, 'x')]"}


def test_rich_values_are_shown_with_their_rank(kernel: Kernel, method: str) -> None:
    kernel.run(RICH)
    found = data(kernel.run(f"%%mpspawn -n 3 --start-method {method}\n(Rich(rank), Picture(), '<text>')[rank]"))
    assert found["text/plain"] == "[Rich(0), <Picture>, '<text>']"
    order = ["[0]", "<b>number 0</b>", "[1]", "data:image/png;base64,iVBORw0KGgo=", "[2]", "<pre>&#x27;&lt;text&gt;"]
    places = [found["text/html"].find(part) for part in order]
    assert places == sorted(places)
    assert min(places) > 0


def test_the_value_is_a_list(kernel: Kernel) -> None:
    kernel.run("%%mpspawn -n 2 --out values\nrank * 10")
    assert kernel.run("_ == [0, 10] == values and isinstance(_, list)").value == "True"


def test_rich_values_of_a_launch_in_the_background_are_shown(kernel: Kernel) -> None:
    kernel.run(RICH)
    cell = kernel.run("%%mpspawn -n 2 --bg\nRich(rank)")

    def shown() -> list[str]:
        return [m.content["data"].get("text/html", "") for m in cell.of("display_data")]

    kernel.until(lambda: any("number 1" in html for html in shown()), "the values are shown")
