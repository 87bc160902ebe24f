"""The pictures of the README and the guide. `python3 dev.py pictures` takes them and puts them into docs/images."""

from __future__ import annotations

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

WIDTH, SCALE = 1000, 2
HEIGHT_BELOW = 110
"""Of what the ranks have printed, so much is to be seen."""
CELLS = [
    "%load_ext nbmp\nimport time\nimport numpy as np\nimport nbmp\n\n"
    "weights = nbmp.zeros((64, 10))\nbatches = nbmp.Queue()\nsteps = [60, 700, 700, 700]",
    "%%mpspawn -n 4 --bg\n"
    'for step in nbmp.progress(range(steps[rank]), desc="train"):\n'
    "    weights -= np.random.normal(size=weights.shape)  # shared: all ranks write to it\n"
    "    if step % 20 == 0:\n"
    '        print(f"step {step:3d}  loss {2 / (step + 4) ** 0.5:.3f}")\n'
    "    if step == 80 and rank == 2:\n"
    "        scores = batches.get() @ weights\n"
    "    time.sleep(0.03 + 0.005 * rank)",
    "batches.put(np.ones((32, 60)))",
]


def picture(page: Page, name: str) -> None:
    """Take what can be seen of the last cell, from its code to the first lines of its ranks."""
    page.wait_for_timeout(300)
    cell = page.locator(".jp-CodeCell >> nth=1")
    cell.evaluate("e => e.scrollIntoView({block: 'start'})")
    page.wait_for_timeout(300)
    box, table = cell.bounding_box(), page.locator(".nbmp-ranks").bounding_box()
    assert box is not None
    assert table is not None
    left = table["x"] - 60
    height = table["y"] + table["height"] + HEIGHT_BELOW - box["y"]
    width, height = box["x"] + box["width"] - left, min(height, 730 - box["y"])
    page.screenshot(path=PICTURES / f"{name}.png", clip={"x": left, "y": box["y"], "width": width, "height": height})


def wait_for(page: Page, *texts: str) -> None:
    for text in texts:
        page.wait_for_function("t => document.querySelector('.nbmp-ranks')?.innerText.includes(t)", arg=text)


def test_pictures_of_a_launch_that_runs_and_of_one_that_failed(jupyter: Lab) -> None:
    with jupyter.notebook("pictures.ipynb", CELLS, "JupyterLab Light", WIDTH, SCALE) as page:
        run_cells(page, 2)
        wait_for(page, "1 waiting", "waits for a queue (get)", "1 done")
        picture(page, "monitor")
        for width in (900, 700, 600):
            page.set_viewport_size({"width": width, "height": 760})
            assert page.locator(".nbmp-ranks.live").evaluate("e => e.scrollWidth <= e.clientWidth"), width
        page.set_viewport_size({"width": WIDTH, "height": 760})
        page.click(".jp-Notebook .jp-CodeCell >> nth=2 >> .cm-content")
        page.keyboard.press("Shift+Enter")  # a batch that does not fit
        page.wait_for_selector("text=ProcessRaisedException", timeout=60_000)
        wait_for(page, "1 failed", "scores = batches.get() @ weights")
        picture(page, "failed")
