"""Ranks in the background of a notebook that a program runs: what is in the notebook that it saves."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests import scripts
from tests.notebook.kernels import Kernel
from tests.notebook.kernels import tables as tables_of

Saved = dict[str, list[dict[str, Any]]]

RUN = """\
import json, nbclient, nbformat
cells = [nbformat.v4.new_code_cell(source) for source in {sources!r}]
notebook = nbformat.v4.new_notebook(cells=cells)
client = nbclient.NotebookClient(notebook, timeout=60, kernel_name="python3", allow_errors=True)
client.execute()
print(json.dumps([cell.outputs for cell in notebook.cells]))
"""


CELLS = {
    "first": "%load_ext nbmp\nimport os, time\ndef wait():\n    while not os.path.exists('go'): time.sleep(0.01)",
    "ends": "%%mpspawn -n 2 --bg --name ctx\nwait()\nprint('late')\nrank",
    "fails": "%%mpspawn -n 2 --bg\nwait()\nif rank: 1 / 0",
    "joins": "open('go', 'w').close()\nctx.join()\ntime.sleep(1)",
    "stays": "%%mpspawn -n 2 --bg\ntime.sleep(100)",
    "last": "time.sleep(1)",
}


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Saved:
    """Return the outputs of the cells after a run as nbconvert and papermill do it."""
    pytest.importorskip("nbclient")
    told = scripts.output(tmp_path_factory.mktemp("nbclient"), RUN.format(sources=[*CELLS.values()]))
    return dict(zip(CELLS, json.loads(told.splitlines()[-1]), strict=True))


def tables(outputs: list[dict[str, Any]]) -> list[dict[str, str]]:
    return [output["data"] for output in outputs if "nbmp" in output.get("data", {}).get("text/html", "")]


def text(outputs: list[dict[str, Any]], name: str = "stdout") -> str:
    return "".join(output["text"] for output in outputs if output.get("name") == name)


def test_the_table_has_its_last_form_when_ranks_end_before_the_notebook_does(saved: Saved) -> None:
    (table,) = tables(saved["ends"])
    assert table.keys() == {"text/plain", "text/html"}
    for form in table.values():
        assert "2 done" in form
        assert "still running" not in form
    assert not tables(saved["joins"])


def test_the_table_says_so_when_they_do_not(saved: Saved) -> None:
    (table,) = tables(saved["stays"])
    for form in table.values():
        assert "2 running" in form
        assert "still running when this was saved" in form


def test_what_comes_after_its_cell_is_where_the_notebook_is_then(saved: Saved) -> None:
    assert text(saved["joins"]).count("late") == 2
    assert "ZeroDivisionError" in tables(saved["fails"])[0]["text/plain"]
    assert "ProcessRaisedException" in text(saved["joins"], "stderr")


@pytest.mark.may_keep("children", "descriptors")  # the kernel's fork server, the event loop of its client
def test_what_has_ended_is_sent_once_more_and_then_no_more(fresh_kernel: Kernel) -> None:
    fresh_kernel.is_attended = False
    fresh_kernel.run("%load_ext nbmp")
    fresh_kernel.run(
        "%%mpspawn -n 2 --bg --name ctx\nimport os, time\nwhile not os.path.exists('go'): time.sleep(0.01)"
    )
    fresh_kernel.run("open('go', 'w').close()\nctx.join()\nctx.finished.wait(20)")
    fresh_kernel.run("pass")
    later = fresh_kernel.run("pass")
    assert not list(tables_of(later.messages))
