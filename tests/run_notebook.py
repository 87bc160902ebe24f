"""Execute a notebook in a real kernel, from top to bottom, and print the text that its cells show.

    python tests/run_notebook.py notebooks/01_first_ranks.ipynb

Used by `dev.py demo` and by the tests. The kernel is this interpreter's own; a cell that raises ends the run,
unless it is tagged `raises-exception`, and such a cell must raise.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
CELL_TIMEOUT = 120


def execute(path: Path, *, show: bool = False) -> Any:
    """Execute the notebook at `path` and return it with its outputs.

    Raises nbclient's CellExecutionError for a cell that raises against its tag, AssertionError for one that
    does not raise against its tag.
    """
    # ipykernel leaves descriptors 1 and 2 alone if it sees pytest; people's kernels do not.
    os.environ.pop("PYTEST_CURRENT_TEST", None)
    notebook: Any = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    options: dict[str, Any] = {"on_cell_executed": show_cell} if show else {}
    client = NotebookClient(
        notebook,
        kernel_name="python3",
        timeout=CELL_TIMEOUT,
        extra_arguments=["--log-level=ERROR"],  # ipykernel 7 warns that it listens on plain TCP
        resources={"metadata": {"path": str(path.parent)}},
        **options,
    )
    client.execute()
    for number, cell in enumerate(notebook.cells):
        if "raises-exception" in cell.metadata.get("tags", []):
            kinds = {output.output_type for output in cell.outputs}
            assert "error" in kinds, f"cell {number} is tagged raises-exception but raised nothing"
    return notebook


def show_cell(cell: Any, cell_index: int, execute_reply: Any) -> None:
    """Print the outputs of a cell that has just run, under its number."""
    text = "\n".join(filter(None, (output_text(output) for output in cell.outputs)))
    if not sys.stdout.isatty():
        text = ANSI.sub("", text)
    if text:
        print(f"\n--- In [{cell.execution_count}] {'-' * 60}\n{text}", flush=True)


def output_text(output: Any) -> str:
    """Return what a text terminal can show of an output."""
    if output.output_type == "stream":
        return str(output.text).rstrip("\n")
    if output.output_type == "error":
        return "\n".join(output.traceback)
    return str(output.data.get("text/plain", "")).rstrip("\n")


if __name__ == "__main__":
    try:
        cells = execute(Path(sys.argv[1]), show=True).cells
    except CellExecutionError as error:
        sys.exit(f"{sys.argv[1]}: a cell raised {error.ename}: {error.evalue}")
    planned = sum("raises-exception" in cell.metadata.get("tags", []) for cell in cells)
    print(f"\n{sys.argv[1]}: every cell did what it should; {planned} raised, as planned")
