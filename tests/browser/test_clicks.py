"""Clicks and typing in JupyterLab while a cell runs, and ranks that run on when it has ended."""

from __future__ import annotations

import pytest

pytest.importorskip("playwright")

from tests.browser.lab import PICTURES, Lab, run_cells

pytestmark = [
    pytest.mark.browser,
    pytest.mark.slow,
    pytest.mark.timeout(240),
    pytest.mark.may_keep("children", "descriptors"),  # the server and the browser
]

CELLS = [
    "import threading, ipywidgets\n"
    "from nbmp.notebook.live import clicks\n"
    "clicked, typed = threading.Event(), threading.Event()\n"
    "button = clicks.button(ipywidgets, 'Go on', clicked.set)\n"
    "field = ipywidgets.Text()\n"
    "clicks.arrive_at_once(field)\n"
    "field.observe(lambda change: change['new'] == 'rank 7' and typed.set(), 'value')",
    "display(button, field)\nprint('blocked')\nprint('clicked', clicked.wait(60))\nprint('typed', typed.wait(60))",
]


def test_a_click_and_what_is_typed_arrive_while_the_cell_blocks(jupyter: Lab) -> None:
    with jupyter.notebook("clicks.ipynb", CELLS, "JupyterLab Light") as page:
        run_cells(page, 2)
        page.wait_for_selector("text=blocked")
        page.click("button:has-text('Go on')")
        page.wait_for_selector("text=clicked True", timeout=20_000)
        page.fill(".widget-text input", "rank 7")
        page.wait_for_selector("text=typed True", timeout=20_000)


BACKGROUND = [
    "%load_ext nbmp\nimport os, time",
    "%%mpspawn -n 4 --bg --name ctx\n"
    "print('up')\n"
    "while not os.path.exists('fail'):\n"
    "    time.sleep(0.1)\n"
    "if rank == 1:\n"
    "    raise ValueError('shapes (8,3) and (4,) do not match')\n"
    "time.sleep(100)",
    "sum(range(10))",
    "open('fail', 'w').close()",
]


def test_a_launch_in_the_background_is_used_while_other_cells_run(jupyter: Lab) -> None:
    """One of its ranks is stopped by its button, then another one fails."""
    PICTURES.mkdir(exist_ok=True)
    with jupyter.notebook("background.ipynb", BACKGROUND, "JupyterLab Light") as page:
        run_cells(page, 3)
        page.wait_for_selector(".jp-CodeCell >> nth=2 >> text=45")
        launching = page.locator(".jp-CodeCell >> nth=1")
        launching.locator("text=4 running").wait_for()
        launching.locator("button[title^='Stop rank 2']").click()
        launching.locator("text=1 stopped").wait_for()
        page.screenshot(path=PICTURES / "background-running.png")
        page.click(".jp-CodeCell >> nth=3 >> .cm-content")
        page.keyboard.press("Shift+Enter")
        launching.locator("text=ProcessRaisedException").wait_for(timeout=60_000)
        launching.locator("text=3 stopped").wait_for()
        page.screenshot(path=PICTURES / "background-failed.png")
