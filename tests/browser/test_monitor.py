"""The table of ranks as a person sees it in JupyterLab: it moves, is clicked while the cell runs, stays when saved."""

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

FIRST = "%load_ext nbmp\nimport queue, time\nimport nbmp\nweights = nbmp.zeros((8, 1024, 1024))\nFAIL = False"
TRAIN = """\
%%mpspawn -n {ranks}
for step in nbmp.progress(range(600), desc="train"):
    weights[0, 0, rank] += 1
    if step % 5 == 0:
        print(f"step {{step}} loss {{1 / (step + 2):.3f}}")
    time.sleep({pause})
    if step == 20 and rank % 16 == 2:
        queue.Queue().get(timeout=100)
    if step == 30 and rank == 1:
        break
    if step == 45 and rank == 3 and FAIL:
        raise ValueError("shapes (8,3) and (4,) do not match")
step"""


def cells(ranks: int = 4, pause: float = 0.1, *, fail: bool = False) -> list[str]:
    return [FIRST.replace("False", str(fail)), TRAIN.format(ranks=ranks, pause=pause)]


def wait_for_text(page: Page, text: str, selector: str = ".nbmp-ranks") -> None:
    page.wait_for_function(
        "([text, selector]) => [...document.querySelectorAll(selector)].some(e => e.innerText.includes(text))",
        arg=[text, selector],
        timeout=60_000,
    )


def picture(page: Page, name: str) -> None:
    """Keep what is to be seen, the table at the top."""
    page.evaluate("document.querySelector('.nbmp-ranks').scrollIntoView({block: 'start'})")
    page.wait_for_timeout(300)
    page.screenshot(path=PICTURES / f"monitor-{name}.png")


def interrupt(page: Page) -> None:
    """Press the stop button of the notebook's toolbar."""
    page.click("jp-button[data-command='notebook:interrupt-kernel'], [title^='Interrupt the kernel']")


OUT_OF_LINE = """() => {
    const middle = e => { const box = e.getBoundingClientRect(); return box.y + box.height / 2 };
    const buttons = [...document.querySelectorAll('.nbmp-ranks > button')].filter(e => e.offsetParent);
    const row = e => 'tr.rank.k' + /\\bb(\\d+)\\b/.exec(e.className)[1] + ' .chip';
    return Math.max(...buttons.map(e => Math.abs(middle(e) - middle(document.querySelector(row(e))))));
}"""
"""Pixels between the middle of a row's button and that of the row, at most."""


def test_it_moves_is_clicked_while_the_cell_runs_and_stays_when_saved(jupyter: Lab) -> None:
    with jupyter.notebook("monitor.ipynb", cells(), "JupyterLab Light") as page:
        run_cells(page, 2)
        wait_for_text(page, "4 running")
        first = page.inner_text(".nbmp-ranks")
        wait_for_text(page, "1 waiting")
        wait_for_text(page, "1 done")
        moved = page.inner_text(".nbmp-ranks")
        assert first != moved
        wait_for_text(page, "Cell In[2], line 8: waits for a queue (get)")
        wait_for_text(page, "30/600")  # of the rank that is done

        page.click(".nbmp label[for$='-1'].k")  # unfolds, and stays so while the rows are replaced
        page.wait_for_timeout(1500)
        assert "step 30 loss 0.031" in page.inner_text("tr.fold.k1")

        page.click(".nbmp button.where.b2")
        wait_for_text(page, "---> 8")
        assert "queue.Queue().get(timeout=100)" in page.inner_text("tr.fold.k2 pre.stack")
        picture(page, "clicked")

        page.click(".nbmp button.stop.b2")
        wait_for_text(page, "1 stopped")
        assert "2 running" in page.inner_text(".nbmp-ranks")

        interrupt(page)
        wait_for_text(page, "3 stopped", ".nbmp-ranks.frozen")
        page.wait_for_selector("text=KeyboardInterrupt")
        page.keyboard.press("Control+s")
        page.wait_for_function("() => !document.querySelector('.jp-mod-dirty')")
        jupyter.load(page, "monitor.ipynb")
        table = page.wait_for_selector(".nbmp-ranks.frozen", timeout=60_000)
        assert table is not None
        page.click(".nbmp-ranks.frozen summary >> nth=1")
        assert page.locator("tr.fold pre >> nth=1").is_visible()
        picture(page, "reloaded")
        saved = json.loads((jupyter.folder / "monitor.ipynb").read_text())
    (kept,) = [out for out in saved["cells"][1]["outputs"] if "nbmp-ranks" in str(out.get("data"))]
    assert kept["data"].keys() == {"text/html", "text/plain"}
    assert "1 done, 3 stopped" in "".join(kept["data"]["text/plain"])


@pytest.mark.parametrize(
    ("theme", "width", "ranks"),
    [
        ("Dark", 1100, 4),
        ("Light", 560, 4),
        ("Light", 1100, 16),
        ("Light", 560, 64),
        pytest.param("Dark", 1100, 64, marks=pytest.mark.whole),
    ],
)
def test_it_fits_whatever_the_theme_the_width_and_the_number_of_ranks(
    jupyter: Lab, theme: str, width: int, ranks: int
) -> None:
    name = f"{theme.lower()}-{width}-{ranks}"
    shown = cells(ranks, 0.1 if ranks < 64 else 0.4)
    with jupyter.notebook(f"{name}.ipynb", shown, f"JupyterLab {theme}", width) as page:
        run_cells(page, 2)
        wait_for_text(page, "1 done")
        page.wait_for_selector(".nbmp .head button >> nth=1")
        picture(page, name)
        grid = page.locator(".nbmp-ranks.live")
        assert grid.evaluate("e => e.scrollWidth <= e.clientWidth")
        if ranks <= 16:
            page.click(".nbmp label[for$='-0'].k")
            assert page.evaluate(OUT_OF_LINE) < 3
        page.click(".nbmp .head button:has-text('Where are they?')")
        page.wait_for_selector(".wherebox pre")
        picture(page, f"{name}-where")
        page.click(".nbmp .head button:has-text('Stop all')")
        wait_for_text(page, f"{ranks - 1} stopped", ".nbmp-ranks.frozen")
        picture(page, f"{name}-end")
        box = page.locator(".nbmp-ranks").bounding_box()
        assert box is not None
        assert box["width"] <= width


def test_of_many_ranks_some_are_chosen_without_the_kernel_and_by_a_word(jupyter: Lab) -> None:
    with jupyter.notebook("many.ipynb", cells(64, 0.4), "JupyterLab Light") as page:
        run_cells(page, 2)
        wait_for_text(page, "4 waiting")
        assert page.locator("tr.rank.k2 td >> nth=0").is_visible()
        assert not page.locator("tr.rank.k5 td >> nth=0").is_visible()
        page.click(".nbmp label.tile[for$='-5']")
        assert page.locator("tr.rank.k5 td >> nth=0").is_visible()
        page.fill(".nbmp .head input", "8-10")
        page.click(".nbmp .head button:has-text('Stop 3')")
        wait_for_text(page, "3 stopped")
        picture(page, "many-chosen")
        interrupt(page)
        wait_for_text(page, "63 stopped", ".nbmp-ranks.frozen")


@pytest.mark.parametrize("theme", ["Light", "Dark"])
def test_a_failed_rank_says_why_in_its_place(jupyter: Lab, theme: str) -> None:
    with jupyter.notebook(f"failed-{theme}.ipynb", cells(fail=True), f"JupyterLab {theme}") as page:
        run_cells(page, 2)
        wait_for_text(page, "1 failed")
        page.wait_for_selector("text=ProcessRaisedException")
        wait_for_text(page, "2 stopped", ".nbmp-ranks.frozen")
        picture(page, f"{theme.lower()}-failed")
        error = page.inner_text(".nbmp-ranks pre.err")
        assert error.startswith("ValueError: shapes (8,3) and (4,) do not match")
        assert "Cell In[2], line 12" in error


def test_an_untrusted_notebook_keeps_a_plain_table_with_folds(jupyter: Lab) -> None:
    with jupyter.notebook("trusted.ipynb", cells(fail=True), "JupyterLab Light") as page:
        run_cells(page, 2)
        wait_for_text(page, "2 stopped", ".nbmp-ranks.frozen")
        page.wait_for_selector("text=ProcessRaisedException")
        page.keyboard.press("Control+s")
        page.wait_for_function("() => !document.querySelector('.jp-mod-dirty')")
    saved = (jupyter.folder / "trusted.ipynb").read_text()
    (jupyter.folder / "strange.ipynb").write_text(saved.replace("shapes (8,3)", "shapes (9,3)"))  # from somebody else
    with jupyter.notebook("strange.ipynb", None, "JupyterLab Light") as page:
        table = page.locator(".jp-OutputArea table").first
        table.wait_for()
        assert not page.locator(".jp-OutputArea style").count()
        assert table.locator("details[open]").count() == 1
        assert table.locator("details").count() == 4
        table.scroll_into_view_if_needed()
        page.screenshot(path=PICTURES / "monitor-untrusted.png")
