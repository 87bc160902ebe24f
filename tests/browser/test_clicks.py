"""Clicks and typing in JupyterLab while a cell runs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

pytest.importorskip("playwright")

from tests.browser.lab import Lab, lab, run_cells

pytestmark = [
    pytest.mark.browser,
    pytest.mark.slow,
    pytest.mark.timeout(240),
    pytest.mark.may_keep("children", "descriptors"),  # the module's server and browser
]

CELLS = [
    "import threading, ipywidgets\n"
    "from nbmp.notebook import clicks\n"
    "clicked, typed = threading.Event(), threading.Event()\n"
    "button = clicks.button(ipywidgets, 'Go on', clicked.set)\n"
    "field = ipywidgets.Text()\n"
    "clicks.arrive_at_once(field)\n"
    "field.observe(lambda change: change['new'] == 'rank 7' and typed.set(), 'value')",
    "display(button, field)\nprint('blocked')\nprint('clicked', clicked.wait(60))\nprint('typed', typed.wait(60))",
]


@pytest.fixture(scope="module")
def jupyter(tmp_path_factory: pytest.TempPathFactory, chromium: str) -> Iterator[Lab]:
    with lab(tmp_path_factory.mktemp("lab"), chromium) as started:
        yield started


def test_a_click_and_what_is_typed_arrive_while_the_cell_blocks(jupyter: Lab) -> None:
    with jupyter.notebook("clicks.ipynb", CELLS, "JupyterLab Light") as page:
        run_cells(page, 2)
        page.wait_for_selector("text=blocked")
        page.click("button:has-text('Go on')")
        page.wait_for_selector("text=clicked True", timeout=20_000)
        page.fill(".widget-text input", "rank 7")
        page.wait_for_selector("text=typed True", timeout=20_000)
