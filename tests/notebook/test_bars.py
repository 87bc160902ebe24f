"""Progress bars of ranks in a notebook: in the table of ranks, or as lines where there is none."""

from __future__ import annotations

import pytest

from tests.notebook.kernels import Kernel, plain, tables

pytestmark = pytest.mark.may_keep("children")  # the module's kernel, which keeps a fork server

BODY = "for step in {}(range(40), desc='steps'):\n    pass\nprint('done', rank)"


@pytest.mark.parametrize("module", ["tqdm", "tqdm.auto", "tqdm.notebook"])
def test_tqdm_of_the_notebook_is_the_bar_of_each_rank_and_no_line(kernel: Kernel, method: str, module: str) -> None:
    pytest.importorskip("tqdm")
    kernel.run(f"import warnings\nwith warnings.catch_warnings(action='ignore'):\n    from {module} import tqdm")
    cell = kernel.run(f"%%mpspawn -n 2 --name bars --start-method {method}\n" + BODY.format("tqdm"))
    assert sorted(cell.text().splitlines()) == ["[0] done 0", "[1] done 1"]
    assert cell.text("stderr") == ""
    assert kernel.run("[record.progress[:2] for record in bars.ranks]").value == "[(40.0, 40.0), (40.0, 40.0)]"
    assert "40/40" in list(tables(kernel.messages))[-1]


def test_tqdm_first_imported_in_the_rank_is_its_bar_too(kernel: Kernel, method: str) -> None:
    pytest.importorskip("tqdm")
    cell = kernel.run(
        f"%%mpspawn -n 1 --name bars --start-method {method}\nfrom tqdm.auto import tqdm\n" + BODY.format("tqdm")
    )
    assert cell.text() == "[0] done 0\n"
    assert kernel.run("bars.ranks[0].progress.text.partition(' [')[0]").value == "'steps: 40/40'"


def test_without_a_table_the_last_state_of_a_bar_is_a_line(kernel: Kernel, method: str) -> None:
    pytest.importorskip("tqdm")
    cell = kernel.run(
        f"%%mpspawn -n 1 --no-monitor --start-method {method}\nfrom tqdm import tqdm\n" + BODY.format("tqdm")
    )
    assert cell.text("stderr").startswith("[0] steps: 100%|")
    assert cell.text("stderr").count("\n") == 1


def test_progress_is_the_bar_of_each_rank(kernel: Kernel, method: str) -> None:
    kernel.run("import nbmp")
    cell = kernel.run(f"%%mpspawn -n 2 --name bars --start-method {method}\n" + BODY.format("nbmp.progress"))
    assert sorted(plain(cell.text()).splitlines()) == ["[0] done 0", "[1] done 1"]
    assert kernel.run("[record.progress[:2] for record in bars.ranks]").value == "[(40.0, 40.0), (40.0, 40.0)]"
