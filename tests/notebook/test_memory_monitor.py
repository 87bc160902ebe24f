"""`%mpshm` and `nbmp.memory_monitor()`: names, cells and ranks in it; it moves, freezes, and leaves nothing behind."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests import scripts
from tests.notebook.kernels import Cell, Kernel

pytestmark = pytest.mark.may_keep("children")  # the module's kernel, which keeps a fork server

WIDGET = "application/vnd.jupyter.widget-view+json"
THREADS = "import threading\n[t.name for t in threading.enumerate() if 'nbmp-widget' in t.name]"


@pytest.fixture(autouse=True)
def imported(shared_kernel: Kernel) -> None:
    shared_kernel.run("import nbmp, numpy as np, os, time\nfrom nbmp.notebook.memory import monitor as m")
    shared_kernel.is_attended = False


def seen(kernel: Kernel, code: str) -> Cell:
    """Run a cell as from a front end that somebody sits at."""
    kernel.is_attended = True
    try:
        return kernel.run(code)
    finally:
        kernel.is_attended = False


def number(cell: Cell) -> int:
    return int(cell.of("execute_input")[0].content["execution_count"])


def lines(cell: Cell) -> list[str]:
    """Return the lines of the text that was shown last."""
    texts = [m.content["data"]["text/plain"] for m in cell.of("display_data", "update_display_data")]
    (*_, last) = [text.split("\n") for text in texts if text.startswith("shared memory")]
    return list(last)


def line_of(cell: Cell, name: str) -> list[str]:
    """Return the words of the row of this array, columns apart."""
    (found,) = [line for line in lines(cell) if line.split("  ")[0].split(" ")[0] == name]
    return re.split(r"\s{2,}", found)


def freeze(kernel: Kernel, cell: Cell) -> dict[str, str]:
    """End the view under this cell as time does, and return its last form."""
    kernel.run("m._latest.is_over = True")
    kernel.until(lambda: bool(cell.of("update_display_data")), "it is frozen", 10)
    data: dict[str, str] = cell.of("update_display_data")[-1].content["data"]
    return data


def test_a_program_that_runs_the_notebook_gets_a_table_and_no_thread(kernel: Kernel) -> None:
    made = kernel.run("program = nbmp.zeros((300, 1000))\nprogram[:150] = 1")
    cell = kernel.run("%mpshm")
    (shown,) = cell.of("display_data")
    assert shown.content["data"].keys() == {"text/plain", "text/html"}
    where = f"Cell In[{number(made)}]"
    assert line_of(cell, "program") == ["program", "(300, 1000)", "float64", "2 MB", "1 MB", where, "notebook"]
    assert where in shown.content["data"]["text/html"]
    assert kernel.run(THREADS).value == "[]"
    kernel.run("del program")


def test_it_moves_under_its_cell_and_freezes_to_html_when_another_one_is_shown(kernel: Kernel) -> None:
    first = seen(kernel, "%mpshm")
    (shown,) = first.of("display_data")
    assert shown.content["data"].keys() == {"text/plain", WIDGET}
    before = len(kernel.messages)
    work = kernel.run("time.sleep(1.5)\nmoving = nbmp.ones(3_000_000)\ntime.sleep(1.5)")
    assert not work.of("display_data", "update_display_data", "stream")
    found = [m for m in kernel.messages[before:] if m.kind == "comm_msg" and "moving" in str(m.content)]
    assert found, "it says so while the cell runs"
    assert f"Cell In[{number(work)}]" in str(found[0].content)
    bodies = [m for m in kernel.messages[before:] if m.kind == "comm_msg" and 'class="meter"' in str(m.content)]
    assert len(bodies) <= 5
    second = seen(kernel, "nbmp.memory_monitor()")
    kernel.until(lambda: bool(first.of("update_display_data")), "the first one is frozen", 10)
    last = first.of("update_display_data")[-1].content["data"]
    assert last.keys() == {"text/plain", "text/html"}
    assert line_of(first, "moving")[:4] == ["moving", "(3000000,)", "float64", "24 MB"]
    assert re.search(r"as of \d\d:\d\d:\d\d", last["text/html"])
    freeze(kernel, second)
    kernel.run("del moving")


def test_it_freezes_some_time_after_the_last_cell_and_its_thread_ends(kernel: Kernel) -> None:
    cell = seen(kernel, "%mpshm")
    assert kernel.run(THREADS).value == "['nbmp-widget-updater']"
    kernel.run("m.IDLE_SECONDS = 0.5")
    kernel.until(lambda: bool(cell.of("update_display_data")), "it is frozen", 10)
    assert kernel.run(THREADS + "\nm.IDLE_SECONDS = 600.0").value is None
    assert kernel.run(THREADS).value == "[]"
    assert set(lines(cell)[0].split()) >= {"shared", "memory:"}


def test_closing_leaves_no_widget(kernel: Kernel) -> None:
    kernel.run("import ipywidgets.widgets.widget as w")
    count = "len(getattr(w, '_instances', None) or w.Widget.widgets or ())"
    freeze(kernel, seen(kernel, "%mpshm"))  # what all of them share is made once
    before = kernel.run(count).value
    freeze(kernel, seen(kernel, "%mpshm"))
    kernel.until(lambda: kernel.run(count).value == before, "they are closed", 5)


def test_small_arrays_of_one_segment_know_their_cells(kernel: Kernel) -> None:
    cells = [kernel.run(f"small_{name} = nbmp.ones(5)") for name in "ab"]
    kernel.run("nothing = 1")
    cells.append(kernel.run("small_c = nbmp.ones(5)"))
    shown = kernel.run("small_d = nbmp.ones(5)\nnbmp.memory_monitor(rows=None)")
    for name, cell in zip("abcd", [*cells, shown], strict=True):
        assert line_of(shown, f"small_{name}")[5] == f"Cell In[{number(cell)}]"
    kernel.run("del small_a, small_b, small_c, small_d")


def test_ranks_have_their_numbers_and_what_they_made_says_so(kernel: Kernel) -> None:
    kernel.run(
        "table = nbmp.zeros(200_000)\nq = nbmp.Queue()\n"
        "def work(rank):\n    if rank:\n        q.put(nbmp.ones(100_000))\n    while not os.path.exists('stop'):\n"
        "        time.sleep(0.01)\n"
        "if os.path.exists('stop'): os.unlink('stop')\n"
        "train = nbmp.start_processes(work, nprocs=3, join=False, start_method='fork')"
    )
    arrived = kernel.run("got = [q.get(timeout=20), q.get(timeout=20)]")
    cell = kernel.run("%mpshm")
    kernel.run("open('stop', 'w').close()\ntrain.join()\ndel got, table")
    assert line_of(cell, "table")[-1] == "notebook, ranks 0\N{EN DASH}2"
    makers = {line_of(cell, f"got[{place}]")[5] for place in (0, 1)}
    assert makers == {f"Cell In[{number(arrived)}], by rank {rank}" for rank in (1, 2)}


def test_a_pools_workers_are_called_workers(kernel: Kernel) -> None:
    kernel.run("table = nbmp.zeros(200_000)\npool = nbmp.Pool(2)\npool.map(lambda x: table[x], range(4))")
    cell = kernel.run("%mpshm")
    kernel.run("pool.terminate(); pool.join()\ndel pool, table")
    assert re.fullmatch(r"notebook, workers? [01 ]+", line_of(cell, "table")[-1])


def test_the_button_gives_back_what_is_cached(kernel: Kernel) -> None:
    kernel.run("q = nbmp.Queue()\nq.put(np.ones(500_000))\n_ = q.get(timeout=5)\ndel _")
    still = kernel.run("nbmp.memory_monitor(moves=False)")
    assert any(line.startswith("cached (for the next messages)") for line in lines(still))
    cell = seen(kernel, "%mpshm")
    kernel.run("panel = m._latest.panel\nassert not panel.give_back.disabled\npanel.give_back.click()")
    kernel.run(
        "until = time.monotonic() + 5\nwhile not panel.give_back.disabled and time.monotonic() < until: time.sleep(.1)"
    )
    assert kernel.run("panel.give_back.disabled, 'nbmp-hidden' in panel.clean._dom_classes").value == "(True, True)"
    assert not any(line.startswith("cached") for line in freeze(kernel, cell)["text/plain"].split("\n"))


def test_options_and_mistakes(kernel: Kernel) -> None:
    told = kernel.run("%mpshm --help").text()
    for option in ("--all", "--once", "--trim", "--clean"):
        assert option in told
    assert "there is no option --al; did you mean --all?" in kernel.run("%mpshm --al", fails=True).error
    assert kernel.complete("%mpshm --", 9)[:4] == ["--help", "--all", "--once", "--trim"]
    assert not seen(kernel, "%mpshm --once").of("display_data")[0].content["data"].get(WIDGET)
    kernel.run("many = {str(size): nbmp.zeros(100_000 + size) for size in range(30)}")
    assert any(
        line.startswith("and 10 smaller arrays") for line in lines(kernel.run("nbmp.memory_monitor(moves=False)"))
    )
    assert not any(line.startswith("and") for line in lines(kernel.run("%mpshm --all")))
    kernel.run("del many")
    assert "removed what" in kernel.run("%mpshm --trim --clean").text()


def test_captured_output_gets_the_table(kernel: Kernel) -> None:
    seen(kernel, "%%capture captured\n%mpshm")
    assert (
        kernel.run("captured.outputs[0].data.keys() == {'text/plain', 'text/html'}, captured.stdout").value
        == "(True, '')"
    )


def test_an_array_that_only_an_output_holds_is_called_by_it(kernel: Kernel) -> None:
    shown = kernel.run("gone = nbmp.zeros(100_000)\ngone")
    kernel.run("del gone")
    assert line_of(kernel.run("%mpshm"), f"Out[{number(shown)}]")[1:3] == ["(100000,)", "float64"]
    kernel.run("Out.clear()\n_ = __ = ___ = None")


def test_names_are_escaped(kernel: Kernel) -> None:
    kernel.run("odd = {'<b>bold</b>': nbmp.zeros(100_000)}")
    html = kernel.run("%mpshm").of("display_data")[0].content["data"]["text/html"]
    assert "<b>bold" not in html
    assert "&lt;b&gt;bold" in html
    kernel.run("del odd")


def test_without_the_extension_the_function_shows_it_and_does_not_know_earlier_cells(fresh_kernel: Kernel) -> None:
    fresh_kernel.is_attended = False
    fresh_kernel.run("import nbmp\nearly = nbmp.zeros(100_000)")
    fresh_kernel.run("nbmp.memory_monitor()")
    later = fresh_kernel.run("late = nbmp.zeros(100_000)")
    cell = fresh_kernel.run("nbmp.memory_monitor()")
    assert line_of(cell, "early")[5] == "\N{EN DASH}"
    assert line_of(cell, "late")[5] == f"Cell In[{number(later)}]"


def test_unloading_takes_it_away(fresh_kernel: Kernel) -> None:
    fresh_kernel.run("%load_ext nbmp\n%unload_ext nbmp")
    assert "not found" in fresh_kernel.run("%mpshm", fails=True).error


def test_nbclient_saves_html_and_text(kernel: Kernel) -> None:
    pytest.importorskip("nbclient")
    cell = kernel.run(
        "import json, nbformat\nfrom nbclient import NotebookClient\n"
        "sources = '%load_ext nbmp\\nimport nbmp\\nweights = nbmp.ones(100_000)', '%mpshm', 'weights[:] = 2'\n"
        "nb = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in sources])\n"
        "await NotebookClient(nb, kernel_name='python3').async_execute()\n"
        "print(json.dumps([output.data for output in nb.cells[1].outputs]))"
    )
    (shown,) = json.loads(cell.text().splitlines()[-1])
    assert shown.keys() == {"text/plain", "text/html"}
    assert re.search(r"^weights .* Cell In\[1\] +notebook$", shown["text/plain"], re.MULTILINE)
    assert "Cell In[1]" in shown["text/html"]


def test_a_script_prints_a_table(tmp_path: Path) -> None:
    told = scripts.output(
        tmp_path,
        """
        import nbmp
        weights = nbmp.ones((1000, 100))
        nbmp.memory_monitor()
        """,
    )
    assert re.search(r"^weights +\(1000, 100\) +float64 +800 kB +80\d kB +. +this process$", told, re.MULTILINE)


def test_a_terminal_prints_a_table(tmp_path: Path) -> None:
    path = scripts.write(tmp_path, "%load_ext nbmp\nimport nbmp\nweights = nbmp.ones(100_000)\n%mpshm\n", "script.ipy")
    command = [sys.executable, "-B", "-m", "IPython", "--quick", "--colors=NoColor", str(path)]
    done = subprocess.run(command, env=scripts.environment(), cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert "weights" in done.stdout, done.stderr
    assert "<div" not in done.stdout
