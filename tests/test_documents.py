"""What the README and the guide show works as it stands there, and their links lead somewhere."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.pages import README, ROOT, blocks, program, promised, write_notebook
from tests.scripts import environment

GUIDE = sorted((ROOT / "docs").glob("*.md"))
PAGES = [README, ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *GUIDE]


PROGRAMS = [page for page in PAGES if blocks(page, "python")]
NOTEBOOKS = [page for page in PAGES if blocks(page, "ipython")]


def output_of(text: str, folder: Path) -> list[str]:
    script = folder / "program.py"
    script.write_text(text)
    command = [sys.executable, str(script)]
    return subprocess.check_output(command, text=True, cwd=folder, env=environment()).splitlines()


def name_of(page: Path) -> str:
    return page.stem


@pytest.mark.parametrize("page", PROGRAMS, ids=name_of)
def test_program_of_a_page_prints_what_it_says(page: Path, tmp_path: Path) -> None:
    assert output_of(program(page), tmp_path) == promised(program(page))


@pytest.mark.parametrize("start_method", ["forkserver", "spawn"])
def test_program_of_the_readme_prints_that_whichever_way_ranks_are_started(start_method: str, tmp_path: Path) -> None:
    choice = f"mp.set_start_method({start_method!r})\n\n\ndef work"
    assert output_of(program(README).replace("def work", choice), tmp_path) == promised(program(README))


def test_cells_of_the_pages_run_in_a_kernel(tmp_path: Path) -> None:
    path = tmp_path / "pages.ipynb"
    write_notebook(path, [cell for page in NOTEBOOKS for cell in blocks(page, "ipython")])
    command = [sys.executable, str(ROOT / "tests" / "run_notebook.py"), str(path)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment(), check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def anchors(page: Path) -> set[str]:
    """Return the names of the page's headings, as GitHub and MyST make them."""
    titles = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_of_a_page_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
        if target.startswith("https:"):
            continue
        file, _, anchor = target.partition("#")
        path = page.parent / file if file else page
        assert path.exists(), target
        assert not anchor or anchor in anchors(path), target
