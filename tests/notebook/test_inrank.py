"""IPython's own ways to show something, in a rank."""

from __future__ import annotations

import re

import pytest

from tests.notebook.kernels import Kernel

pytestmark = pytest.mark.may_keep("children")  # the module's kernel, which keeps a fork server


def launch(kernel: Kernel, method: str, body: str, *, fails: bool = False) -> str:
    """Run the body in one rank; return the text below the cell."""
    return kernel.run(f"%%mpspawn -n 1 --no-monitor --start-method {method}\n{body}", fails=fails).text()


def test_tracebacks_that_ipython_shows_are_seen(kernel: Kernel, method: str) -> None:
    kernel.run("with open('bad.py', 'w') as file:\n    file.write('print(1)\\n1/0\\n')")
    for body in (
        "get_ipython().run_line_magic('run', 'bad.py')",
        "get_ipython().run_cell('1/0')",
        "try:\n    1/0\nexcept ZeroDivisionError:\n    get_ipython().showtraceback()",
        "get_ipython().run_cell('print(1')",
    ):
        text = launch(kernel, method, f"{body}\nprint('goes on')")
        assert re.search("ZeroDivisionError|SyntaxError|IncompleteInputError", text), body
        assert text.endswith("[0] goes on\n")


def test_a_representation_that_fails_is_told_and_the_other_one_shown(kernel: Kernel, method: str) -> None:
    text = launch(
        kernel,
        method,
        "class Bad:\n    def _repr_html_(self):\n        raise LookupError('no html')\n"
        "    def __repr__(self):\n        return 'as text'\ndisplay(Bad())",
    )
    assert "LookupError: no html" in text.replace("[0] ", "")
    assert "[0] as text\n" in text


def test_the_value_of_a_cell_that_a_rank_runs_is_shown(kernel: Kernel, method: str) -> None:
    text = launch(kernel, method, "get_ipython().run_cell('print(1); 6')\nprint('after')")
    assert text == "[0] 1\n[0] 6\n[0] after\n"
    cell = kernel.run(
        f"%%mpspawn -n 1 --no-monitor --start-method {method}\n"
        "get_ipython().run_cell('from IPython.display import HTML; HTML(\"<i>v</i>\")')"
    )
    assert [shown.content["data"].get("text/html") for shown in cell.of("display_data")] == ["<i>v</i>"]


def test_a_question_mark_shows_its_answer(kernel: Kernel, method: str) -> None:
    cell = kernel.run(
        f"%%mpspawn -n 1 --no-monitor --start-method {method}\nget_ipython().run_line_magic('pinfo', 'print')"
    )
    shown = cell.text() + "".join(m.content["data"].get("text/plain", "") for m in cell.of("display_data"))
    assert "Prints the values to a stream" in shown


def test_an_output_widget_lets_through_what_is_shown_within(kernel: Kernel, method: str) -> None:
    pytest.importorskip("ipywidgets")
    text = launch(
        kernel,
        method,
        "import ipywidgets\narea = ipywidgets.Output()\ndisplay(area)\nwith area:\n    print(1)\n    display('two')\n"
        "print('end')",
    )
    assert text == "[0] 1\n[0] 'two'\n[0] end\n"


def test_a_progress_bar_of_rich_is_shown_in_one_place(kernel: Kernel, method: str) -> None:
    pytest.importorskip("rich")
    cell = kernel.run(
        f"%%mpspawn -n 1 --no-monitor --start-method {method}\nimport time\nfrom rich.progress import track\n"
        "for _ in track(range(4), description='busy'):\n    time.sleep(0.05)\nprint('end')"
    )
    assert cell.text().endswith("end\n")
    assert "busy" in cell.text() + str([m.content["data"] for m in cell.of("display_data", "update_display_data")])
    assert len(cell.of("display_data")) <= 2
