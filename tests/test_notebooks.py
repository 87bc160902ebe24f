"""Every notebook keeps the house rules and runs from top to bottom in a real kernel."""

from __future__ import annotations

import functools
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
WIDTH, WIDTH_IN_TEXT = 92, 84
"""Characters of a line of code: so many fit in JupyterLab on a screen 1250 pixels wide."""

pytestmark = pytest.mark.notebooks
each_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def cells_of(path: Path) -> list[dict[str, Any]]:
    """Return the cells with their source as one string."""
    cells = json.loads(path.read_text())["cells"]
    return [cell | {"source": "".join(cell["source"])} for cell in cells]


def code_of(path: Path) -> list[dict[str, Any]]:
    return [cell for cell in cells_of(path) if cell["cell_type"] == "code"]


def test_folder_holds_notebooks_and_nothing_else() -> None:
    assert NOTEBOOKS
    tracked = [path for path in FOLDER.iterdir() if path.name != ".ipynb_checkpoints"]
    assert sorted(tracked) == NOTEBOOKS


@each_notebook
def test_notebook_is_small(path: Path) -> None:
    assert path.stat().st_size <= 30_000
    assert len(cells_of(path)) <= 20


@each_notebook
def test_lines_of_code_fit_beside_the_file_browser(path: Path) -> None:
    for cell in cells_of(path):
        is_code = cell["cell_type"] == "code"
        blocks = [cell["source"]] if is_code else re.findall(r"```\w*\n(.*?)```", cell["source"], re.DOTALL)
        width = WIDTH if is_code else WIDTH_IN_TEXT
        assert [line for block in blocks for line in block.splitlines() if len(line) > width] == []


@each_notebook
def test_notebook_stores_no_outputs(path: Path) -> None:
    for cell in code_of(path):
        assert cell["outputs"] == []
        assert cell["execution_count"] is None


@each_notebook
def test_first_cell_has_title_and_badges_that_lead_to_this_notebook(path: Path) -> None:
    first = cells_of(path)[0]
    assert first["cell_type"] == "markdown"
    assert first["source"].startswith("# ")
    assert f"colab.research.google.com/github/nbmp/nbmp/blob/main/notebooks/{path.name})" in first["source"]
    assert f"mybinder.org/v2/gh/nbmp/nbmp/main?urlpath=lab/tree/notebooks/{path.name})" in first["source"]


@each_notebook
def test_install_cell_comes_first_and_acts_on_colab_only(path: Path) -> None:
    install, *others = code_of(path)
    condition, *rest = install["source"].split('if "google.colab" in sys.modules:')
    assert len(rest) == 1
    assert "pip" not in condition
    assert all(line.startswith("    ") for line in rest[0].splitlines()[1:])
    assert not any("pip install" in cell["source"] for cell in others)


@each_notebook
def test_notebook_asserts_what_it_teaches(path: Path) -> None:
    assert any("\nassert " in f"\n{cell['source']}" for cell in code_of(path))


@functools.cache
def printed_by(path: Path) -> str:
    """Run a notebook once, as people do, and return what its cells print."""
    # In a process of its own: an event loop and ZeroMQ's descriptors stay as long as the process does.
    command = [sys.executable, str(ROOT / "tests" / "run_notebook.py"), str(path)]
    variables = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    done = subprocess.run(command, capture_output=True, text=True, env=variables, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@each_notebook
def test_notebook_runs_from_top_to_bottom(path: Path) -> None:
    assert printed_by(path)


def test_first_notebook_prints_results_and_the_planned_failure() -> None:
    shown = printed_by(FOLDER / "01_first_ranks.ipynb")
    for text in ("1347 digits to learn from", "rank 3 took", "after training: 9", "rank 2", "ValueError"):
        assert text in shown
    assert "rank 1 raised ZeroDivisionError" in shown
