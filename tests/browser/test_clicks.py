"""Clicks and typing in JupyterLab while a cell runs, and ranks that run on when it has ended."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("playwright")

from tests.browser.lab import Lab, lab, run_cells

pytestmark = [
    pytest.mark.browser,
    pytest.mark.slow,
    pytest.mark.timeout(240),
    pytest.mark.may_keep("children", "descriptors"),  # the module's server and browser
]

PICTURES = Path(__file__).resolve().parents[2] / "artefacts"

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


BACKGROUND = [
    "%load_ext nbmp\nimport time",
    "%%mpspawn -n 3 --bg --name ctx\n"
    "for step in range(100):\n"
    "    print('step', step)\n"
    "    time.sleep(0.1)\n"
    "    if rank == 1 and step == 60:\n"
    "        raise ValueError('shapes (8,3) and (4,) do not match')",
    "sum(range(10))",
]


def test_a_launch_in_the_background_moves_on_and_its_failure_is_told_under_its_cell(jupyter: Lab) -> None:
    PICTURES.mkdir(exist_ok=True)
    with jupyter.notebook("background.ipynb", BACKGROUND, "JupyterLab Light") as page:
        run_cells(page, 3)
        page.wait_for_selector(".jp-CodeCell >> nth=2 >> text=45")
        launching = page.locator(".jp-CodeCell >> nth=1")
        assert "3 running" in launching.inner_text()
        page.screenshot(path=PICTURES / "background-running.png")
        launching.locator("text=ProcessRaisedException").wait_for(timeout=60_000)
        launching.locator("text=2 stopped").wait_for()
        page.screenshot(path=PICTURES / "background-failed.png")
