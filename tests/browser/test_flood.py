"""Ranks that print as fast as they can, as a person sees them in JupyterLab: the page answers, the end is seen."""

from __future__ import annotations

import json
import time

import pytest

pytest.importorskip("playwright")

from playwright.sync_api import Page

from tests.browser.lab import PICTURES, Lab, run_cells

pytestmark = [
    pytest.mark.browser,
    pytest.mark.slow,
    pytest.mark.timeout(240),
    pytest.mark.may_keep("children", "descriptors"),  # the server and the browser
]

USABLE, FROZEN = 3.0, 15.0
"""Seconds that a click may take as a rule, and at most: far more than it does, since the ranks and other tests take all
cores of the machine meanwhile, and far less than what a page took that was stuck (120 s)."""

CELLS = [
    "%load_ext nbmp\nimport time",
    "%%mpspawn -n 16\n"
    "end, step = time.monotonic() + 5, 0\n"
    "while time.monotonic() < end:\n"
    "    print(f'step {step} loss {1 / (step + 1):.6f}')\n"
    "    step += 1\n"
    "print('the end of', rank)",
    "%%mpspawn -n 4\n"
    "for step in range(COUNT):\n    print('fast', step)\n"
    "for step in range(30):\n    print('slow', step)\n    time.sleep(0.2)",
]


def is_done(page: Page, cell: int) -> bool:
    prompt = "i => document.querySelectorAll('.jp-CodeCell')[i].querySelector('.jp-InputPrompt').textContent"
    return bool(page.evaluate(prompt, cell) == f"[{cell + 1}]:")


def click_until_done(page: Page, cell: int) -> list[float]:
    """Click into the first cell again and again; return how long each click took to have its effect."""
    times = []
    deadline = time.monotonic() + 120
    while not is_done(page, cell):
        assert time.monotonic() < deadline, "the cell does not end"
        begun = time.monotonic()
        for place in (cell, 0):
            page.locator(".jp-CodeCell .cm-content").nth(place).focus()
            page.wait_for_function(
                "i => document.querySelectorAll('.jp-CodeCell')[i].contains(document.activeElement)", arg=place
            )
        times.append(time.monotonic() - begun)
    return times


def test_page_answers_while_sixteen_ranks_print_as_fast_as_they_can(jupyter: Lab) -> None:
    with jupyter.notebook("flood.ipynb", CELLS, "JupyterLab Light") as page:
        run_cells(page, 2)
        times = click_until_done(page, 1)
        assert max(times) < FROZEN
        assert sorted(times)[len(times) // 2] < USABLE
        assert page.evaluate("document.querySelectorAll('*').length") < 20_000
        text = page.locator(".jp-CodeCell").nth(1).locator(".jp-OutputArea-output").last.inner_text()
        assert "lines of 16 ranks held back: nbmp.output(rank, launch=1)" in text
        assert all(f"[{rank}] the end of {rank}" in text for rank in range(16))
        page.evaluate("[...document.querySelectorAll('.jp-OutputArea-output')].pop().scrollIntoView({block: 'end'})")
        page.screenshot(path=PICTURES / "flood.png")
        page.keyboard.press("Control+s")
        saved = jupyter.folder / "flood.ipynb"
        page.wait_for_function("() => !document.querySelector('.jp-mod-dirty')")
        outputs = json.loads(saved.read_text())["cells"][1]["outputs"]
        assert any("held back" in str(output.get("data")) for output in outputs)


@pytest.mark.parametrize("count", [pytest.param(1800, marks=pytest.mark.whole), 2500])
def test_page_answers_while_lines_trickle_in_after_many(jupyter: Lab, count: int) -> None:
    cells = [f"{CELLS[0]}\nCOUNT = {count}", CELLS[2]]
    with jupyter.notebook(f"trickle-{count}.ipynb", cells, "JupyterLab Light") as page:
        run_cells(page, 2)
        times = click_until_done(page, 1)
        assert max(times) < FROZEN
        assert sorted(times)[len(times) // 2] < USABLE
