"""The view of shared memory as a person sees it in JupyterLab."""

from __future__ import annotations

import json

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

CELLS = [
    "%load_ext nbmp\nimport nbmp\nimport numpy as np\nimport time\n\n"
    "weights = nbmp.zeros((8, 1024, 4096))\nweights[:3] = 1",
    "images = nbmp.ones((1797, 64), 'f4')\nbatches = [nbmp.ones((256, 1000)) for _ in range(8)]\n"
    "half, flat = images[::2], images.reshape(-1)\n"
    "queue = nbmp.Queue()\nqueue.put(np.ones((1000, 2000)))\nqueue.put(np.ones((1000, 2000)))",
    "def work(rank):\n    queue.get()\n    time.sleep(120)\n\n"
    "ctx = nbmp.start_processes(work, nprocs=2, join=False)\ntime.sleep(1)",
    "%mpshm",
    "queue.put(np.ones((500, 4000)))\nqueue.get()\nmore = nbmp.full((500, 4000), 1.5)\ntime.sleep(3)",
    "ctx.stop(0)\nnbmp.memory_monitor()",
]


EDGES = """() => {
    const right = e => e.getBoundingClientRect().right;
    const table = document.querySelector('.nbmp-ranks.live');
    const buttons = [...table.querySelectorAll(':scope>button')];
    return {
        gaps: buttons.filter(e => e.matches('.stop')).map(e => right(table) - right(e)),
        cut: buttons.filter(e => e.scrollWidth > e.clientWidth).length,
        hidden: [...document.querySelectorAll('.nbmp-memory .rows')].map(e => e.scrollWidth - e.clientWidth),
    };
}"""
"""How far the buttons of rows are from the edge, how many are too narrow for their word, what is out of sight."""


def wait_for_text(page: Page, text: str) -> None:
    page.wait_for_function(
        "text => [...document.querySelectorAll('.nbmp-memory')].some(e => e.innerText.includes(text))",
        arg=text,
        timeout=60_000,
    )


def picture(page: Page, name: str) -> None:
    """Take a picture with the first view in the middle: it is replaced while it moves, so no element is clicked on."""
    page.evaluate("document.querySelector('.nbmp-memory').scrollIntoView({block: 'center'})")
    page.screenshot(path=PICTURES / f"{name}.png")


@pytest.mark.parametrize(
    ("theme", "width"), [("Dark", 1100), ("Light", 560), pytest.param("Light", 1100, marks=pytest.mark.whole)]
)
def test_it_moves_while_cells_run_gives_back_and_stays_when_saved(jupyter: Lab, theme: str, width: int) -> None:
    name = f"memory-{theme.lower()}-{width}"
    with jupyter.notebook(f"{name}.ipynb", CELLS, f"JupyterLab {theme}", width) as page:
        run_cells(page, 4)
        wait_for_text(page, "batches[0] … [7]")
        box = page.locator(".nbmp-memory").first.bounding_box()
        assert box is not None
        assert box["width"] <= width
        edges = page.evaluate(EDGES)
        assert min(edges["gaps"]) >= 6, "the rules of the view outweigh those of the table of ranks above it"
        assert edges["cut"] == 0
        assert max(edges["hidden"]) <= 0
        picture(page, f"{name}-moves")
        page.keyboard.press("Shift+Enter")
        wait_for_text(page, "cached for the next messages")
        wait_for_text(page, "more")
        picture(page, f"{name}-cached")
        page.click("button:has-text('Give cached back'):not([disabled])")
        page.wait_for_selector("button[disabled]:has-text('Give cached back')", timeout=20_000)
        page.keyboard.press("Escape")
        page.click(".jp-Notebook .jp-CodeCell >> nth=5 >> .cm-content")
        page.keyboard.press("Shift+Enter")
        wait_for_text(page, "as of ")
        picture(page, f"{name}-frozen")
        page.keyboard.press("Control+s")
        page.wait_for_function("() => !document.querySelector('.jp-mod-dirty')")
        saved = json.loads((jupyter.folder / f"{name}.ipynb").read_text())
    (view,) = saved["cells"][3]["outputs"]
    assert view["data"].keys() == {"text/html", "text/plain"}
    assert "Cell In[5]" in "".join(view["data"]["text/plain"])
    assert not saved["cells"][4]["outputs"]
