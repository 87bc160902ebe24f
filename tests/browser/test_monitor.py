"""The table of ranks as a person sees it in JupyterLab."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("playwright")

from playwright.sync_api import Page

from tests.browser.lab import Lab, lab, run_cells

pytestmark = [
    pytest.mark.browser,
    pytest.mark.slow,
    pytest.mark.timeout(240),
    pytest.mark.may_keep("children", "descriptors"),  # the module's server and browser
]

PICTURES = Path(__file__).resolve().parents[2] / "artefacts"

CELLS = [
    "%load_ext nbmp\nimport time\nimport numpy as np\n\nweights = np.zeros(64)",
    "%%mpspawn -n 4 --out steps\n"
    "for step in range(40 + 60 * (rank != 2)):\n"
    "    weights += 0.01 * (rank + 1)\n"
    "    if step % 20 == 0:\n"
    "        print(f'step {step} loss {1 / (step + 2):.3f}')\n"
    "    time.sleep(0.08)\n"
    "    if FAIL and rank == 3 and step == 20:\n"
    "        raise ValueError('shapes (8,3) and (4,) do not match')\n"
    "step",
]


@pytest.fixture(scope="module")
def jupyter(tmp_path_factory: pytest.TempPathFactory, chromium: str) -> Iterator[Lab]:
    PICTURES.mkdir(exist_ok=True)
    with lab(tmp_path_factory.mktemp("lab"), chromium) as started:
        yield started


def wait_for_text(page: Page, text: str) -> None:
    page.wait_for_function(
        "text => [...document.querySelectorAll('.nbmp-ranks')].some(e => e.innerText.includes(text))",
        arg=text,
        timeout=60_000,
    )


def table_text(page: Page) -> str:
    return page.inner_text(".nbmp-ranks >> nth=0")


@pytest.mark.parametrize(("theme", "width"), [("Light", 1100), ("Dark", 1100), ("Light", 560)])
def test_the_table_moves_while_the_cell_runs_and_stays_when_saved(jupyter: Lab, theme: str, width: int) -> None:
    name = f"monitor-{theme.lower()}-{width}"
    cells = [f"{CELLS[0]}\nFAIL = False", CELLS[1]]
    with jupyter.notebook(f"{name}.ipynb", cells, f"JupyterLab {theme}", width) as page:
        run_cells(page, 2)
        wait_for_text(page, "1 done")
        page.screenshot(path=PICTURES / f"{name}-running.png")
        before = table_text(page)
        assert "3 running" in before
        wait_for_text(page, "4 done")
        page.wait_for_selector(".jp-OutputArea-executeResult")
        page.screenshot(path=PICTURES / f"{name}-done.png")
        box = page.locator(".nbmp-ranks").first.bounding_box()
        assert box is not None
        assert box["width"] <= width
        page.keyboard.press("Control+s")
        page.wait_for_function("() => !document.querySelector('.jp-mod-dirty')")
        saved = json.loads((jupyter.folder / f"{name}.ipynb").read_text())
    (table,) = [out for out in saved["cells"][1]["outputs"] if out["output_type"] == "display_data"]
    assert table["data"].keys() == {"text/html", "text/plain"}
    assert "4 done" in "".join(table["data"]["text/plain"])


def test_a_failed_rank_is_red_and_the_others_stopped(jupyter: Lab) -> None:
    cells = [f"{CELLS[0]}\nFAIL = True", CELLS[1]]
    with jupyter.notebook("failed.ipynb", cells, "JupyterLab Dark") as page:
        run_cells(page, 2)
        wait_for_text(page, "3 stopped")
        page.wait_for_selector("text=ProcessRaisedException")
        page.screenshot(path=PICTURES / "monitor-dark-failed.png")
        assert "ValueError" in table_text(page)
