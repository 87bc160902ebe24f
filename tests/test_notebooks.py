"""Every notebook keeps the house rules and runs from top to bottom in a real kernel."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))

pytestmark = pytest.mark.notebooks
each_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def cells_of(path: Path) -> list[dict[str, Any]]:
    """Return the cells with their source as one string."""
    cells = json.loads(path.read_text())["cells"]
    return [cell | {"source": "".join(cell["source"])} for cell in cells]


def code_of(path: Path) -> list[dict[str, Any]]:
    return [cell for cell in cells_of(path) if cell["cell_type"] == "code"]


def tagged_to_fail(cell: dict[str, Any]) -> bool:
    return "raises-exception" in cell["metadata"].get("tags", [])


def test_folder_holds_notebooks_and_nothing_else() -> None:
    assert NOTEBOOKS
    tracked = [path for path in FOLDER.iterdir() if path.name != ".ipynb_checkpoints"]
    assert sorted(tracked) == NOTEBOOKS


@each_notebook
def test_notebook_is_small(path: Path) -> None:
    assert path.stat().st_size <= 30_000
    assert len(cells_of(path)) <= 20


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


@each_notebook
@pytest.mark.may_keep("names")  # another run on this machine may be making its own
def test_notebook_runs_from_top_to_bottom(path: Path, clean_environment: dict[str, str]) -> None:
    # In a process of its own: an event loop and ZeroMQ's descriptors stay as long as the process does.
    command = [sys.executable, str(ROOT / "tests" / "run_notebook.py"), str(path)]
    done = subprocess.run(command, capture_output=True, text=True, env=clean_environment, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    if any(tagged_to_fail(cell) for cell in code_of(path)):
        assert "Error" in done.stdout


def test_first_notebook_prints_results(clean_environment: dict[str, str]) -> None:
    """What `dev.py demo` shows: numbers of this run, and the planned failure with its rank."""
    path = FOLDER / "01_first_ranks.ipynb"
    command = [sys.executable, str(ROOT / "tests" / "run_notebook.py"), str(path)]
    done = subprocess.run(command, capture_output=True, text=True, env=clean_environment, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    for text in ("1347 digits to learn from", "rank 3 took", "of the held-out digits are right", "ValueError"):
        assert text in done.stdout
    assert "rank 1 raised ZeroDivisionError" in done.stdout
