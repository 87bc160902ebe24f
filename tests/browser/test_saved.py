"""The table of ranks in a notebook that a program has run, as those who only read it see it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("playwright")

from playwright.sync_api import Browser, Page

from tests.browser.lab import PICTURES, ROOT

pytestmark = [
    pytest.mark.browser,
    pytest.mark.slow,
    pytest.mark.timeout(240),
    pytest.mark.may_keep("children", "descriptors"),  # the browser
]

CELLS = [
    "%load_ext nbmp\nimport time, nbmp",
    "%%mpspawn -n 3\n"
    "for step in nbmp.progress(range(40)):\n"
    "    print('step', step)\n"
    "    time.sleep(0.05)\n"
    "    if rank == 1 and step == 30:\n"
    "        raise ValueError('shapes (8,3) and (4,) do not match')",
]


@pytest.fixture(scope="module")
def notebook(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A notebook that nbclient has run, as nbconvert and papermill do it."""
    import nbclient  # takes seconds, also where other tests were asked for
    import nbformat

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(ROOT))
        new: Any = nbformat.v4
        made = new.new_notebook(cells=[new.new_code_cell(source) for source in CELLS])
        folder = str(tmp_path_factory.mktemp("saved"))
        nbclient.execute(made, cwd=folder, timeout=120, allow_errors=True, kernel_name="python3")
    return made


@pytest.fixture(scope="module")
def page(browser: Browser) -> Iterator[Page]:
    page = browser.new_page(viewport={"width": 1000, "height": 900})
    yield page
    page.close()


def exported(notebook: Any) -> str:
    import nbconvert

    html, _ = nbconvert.HTMLExporter().from_notebook_node(notebook)  # type: ignore[no-untyped-call]
    return re.sub(r'<script[^>]*src="[^"]*"[^>]*>\s*</script>', "", html)


def picture(page: Page, name: str) -> None:
    page.wait_for_timeout(200)
    page.screenshot(path=PICTURES / f"saved-{name}.png")


def test_nbconvert_shows_the_table_with_its_folds(notebook: Any, page: Page) -> None:
    page.set_content(exported(notebook), wait_until="domcontentloaded")
    table = page.locator(".nbmp-ranks")
    assert "1 failed" in table.inner_text()
    assert page.locator("pre.err").is_visible()
    assert "Cell In[2], line 6" in page.inner_text("pre.err")
    folded = page.locator("details:not([open])").first
    assert not folded.locator("pre").is_visible()
    folded.locator("summary").click()
    assert page.locator("tr.fold pre").first.is_visible()
    picture(page, "nbconvert")


def test_without_styles_and_classes_as_on_github_a_plain_table_with_folds_stays(notebook: Any, page: Page) -> None:
    html = re.sub(r"<style.*?</style>|<script.*?</script>", "", exported(notebook), flags=re.S)
    page.set_content(re.sub(r' (?:style|class|for|id)="[^"]*"', "", html), wait_until="domcontentloaded")
    picture(page, "github")
    rows = [line.split("\t")[0].strip() for line in page.locator("table").first.inner_text().splitlines()]
    assert [row for row in rows if row.isdecimal()][:1] == ["0"]
    text = page.inner_text("body")
    assert "rank 0: " in text
    assert "Cell In[2], line 6" in text
    assert "1 failed" in text


def test_a_reader_of_text_finds_the_table_of_text(notebook: Any) -> None:
    (table,) = [output for output in notebook.cells[1].outputs if "text/html" in output.get("data", {})]
    head, columns, *rows = table["data"]["text/plain"].splitlines()
    assert re.fullmatch(r"3 ranks \(\w+\) \d\d:\d\d: 1 failed, 2 stopped", head)
    assert columns.split() == ["rank", "state", "progress", "time", "last", "line"]
    assert rows[1].split()[:2] == ["1", "ValueError"]
