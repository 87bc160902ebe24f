"""`%%mpspawn --bg` and `--name`: ranks that their cell does not wait for."""

from __future__ import annotations

import re

import psutil
import pytest

from tests.notebook.kernels import Cell, Kernel, tables
from tests.waiting import none_runs, until

pytestmark = pytest.mark.may_keep("children")  # the module's kernel, which keeps a fork server

DEFINED = """\
import nbmp, os, threading, time
def wait_for(name):
    while not os.path.exists(name):
        time.sleep(0.01)
def touch(name):
    open(name, 'w').close()
def forget(*names):
    for name in names:
        if os.path.exists(name):
            os.unlink(name)
"""


@pytest.fixture(autouse=True)
def defined(request: pytest.FixtureRequest) -> None:
    if "kernel" in request.fixturenames:
        request.getfixturevalue("kernel").run(f"{DEFINED}forget('go', 'stop')")


def begun(kernel: Kernel, options: str, body: str, ranks: int = 2) -> Cell:
    """Run a cell in the background and wait until its ranks are at `wait_for('go')`; then they do `body`."""
    cell = kernel.run(f"%%mpspawn -n {ranks} --bg {options}\nprint('ready')\nwait_for('go')\n{body}")
    kernel.until(lambda: cell.text().count("ready") == ranks, "all ranks run")
    return cell


def go_on(kernel: Kernel) -> None:
    kernel.run("touch('go')")


def red(kernel: Kernel, cell: Cell) -> str:
    """Wait for red text under a cell that has ended, and return it."""
    kernel.until(lambda: cell.text("stderr").endswith("\n"), "red text under the launching cell")
    return cell.text("stderr")


def test_output_and_results_come_below_the_cell_while_later_cells_run(kernel: Kernel, method: str) -> None:
    cell = begun(kernel, f"--start-method {method} --name ctx", "print('later')\n10 + rank")
    assert kernel.run("[rank.state for rank in ctx.ranks]").value == "['running', 'running']"
    later = kernel.run("touch('go')\nprint(ctx.join())")
    kernel.until(lambda: len(cell.of("display_data")) == 2, "the results are shown")
    kernel.until(lambda: any("2 done" in table for table in tables(cell.messages)), "the table has its last form")
    assert cell.of("display_data")[-1].content["data"] == {"text/plain": "[10, 11]"}
    assert cell.text().count("later") == 2
    assert later.text() == "True\n"
    assert cell.value is None


def test_results_are_bound_when_all_have_ended_and_not_before(kernel: Kernel) -> None:
    kernel.run("sums = 'of an earlier launch'")
    begun(kernel, "--name ctx --out sums", "rank;")
    assert "NameError" in kernel.run("sums", fails=True).error
    assert kernel.run("touch('go')\nctx.join()\nsums").value == "[0, 1]"


def test_a_failure_is_told_below_the_cell_and_stops_the_others(kernel: Kernel, method: str) -> None:
    cell = begun(
        kernel, f"--start-method {method} --name ctx --out sums", "if rank: 1 / 0\ntime.sleep(100 * (1 - rank))"
    )
    go_on(kernel)
    told = red(kernel, cell)
    number = cell.of("execute_input")[0].content["execution_count"]
    assert re.match(r"ProcessRaisedException: rank 1 of 2 \(pid \d+\) raised ZeroDivisionError: division by zero", told)
    assert f"Cell In[{number}], line 4\n" in told
    assert "---> 4 if rank: 1 / 0" in told
    assert "rank 0 ended" in told
    kernel.until(lambda: any("1 stopped" in table for table in tables(cell.messages)), "the table says so")
    assert kernel.run("ctx.join()", fails=True).error == told.rstrip("\n")
    assert kernel.run("'sums' in globals()").value == "False"


def test_a_failure_that_a_join_tells_is_told_once(kernel: Kernel) -> None:
    cell = begun(kernel, "--name ctx", "1 / 0")
    joined = kernel.run("touch('go')\nctx.join()", fails=True)
    assert "ZeroDivisionError" in joined.error
    kernel.run("while any(t.name == 'nbmp-background' for t in threading.enumerate()): time.sleep(0.01)")
    assert not cell.text("stderr")


def test_ranks_whose_time_is_up_are_stopped_and_that_is_told(kernel: Kernel) -> None:
    cell = kernel.run("%%mpspawn -n 2 --bg --timeout 0.5\ntime.sleep(100)")
    assert red(kernel, cell).startswith("LaunchTimeoutError: ranks 0 and 1 of 2 still ran after 0.5 s and were stopped")
    assert kernel.run("[rank.state for rank in nbmp.last_launch().ranks]").value == "['stopped', 'stopped']"


def test_an_interrupt_of_another_cell_leaves_them_and_mpstop_ends_them(kernel: Kernel) -> None:
    cell = begun(kernel, "--name ctx", "rank")
    other = kernel.start("print('other')\ntime.sleep(100)")
    kernel.until(lambda: "other" in other.text(), "the other cell runs")
    kernel.interrupt()
    kernel.until(lambda: bool(other.ended), "the other cell is interrupted")
    assert kernel.run("[rank.state for rank in ctx.ranks]").value == "['running', 'running']"
    assert re.fullmatch(r"ctx: ranks 0 and 1 ended \d\.\d s after SIGTERM\n", kernel.run("%mpstop ctx").text())
    kernel.run("while any(t.name == 'nbmp-background' for t in threading.enumerate()): time.sleep(0.01)")
    assert not cell.text("stderr"), "who stopped them knows it"


def test_several_run_side_by_side_and_the_name_goes_to_the_later_one(kernel: Kernel) -> None:
    first = begun(kernel, "--name ctx", "rank;")
    kernel.run("before = [ctx]")
    second = begun(kernel, "--name ctx", "rank;")
    told = re.search(r"ctx is this launch now; the one before runs on as (.*) \(%mpstop \1 ends it\)\n", second.text())
    assert told
    names = [row.split()[0] for row in kernel.run("%mpstatus").text().splitlines()[1:]]
    assert names == [told[1], told[1], "ctx", "ctx"]
    go_on(kernel)
    assert kernel.run("before[0] is not ctx, before[0].join(), ctx.join()").value == "(True, True, True)"
    assert not first.error + second.error


def test_a_launch_without_a_name_is_reached_by_its_number(kernel: Kernel) -> None:
    begun(kernel, "", "rank;")
    title = kernel.run("%mpstatus").text().splitlines()[1].split()[0]
    assert title.startswith("launch-")
    assert kernel.run("nbmp.last_launch().world_size").value == "2"
    assert kernel.run(f"%mpstop {title}").text().startswith(f"{title}: ranks 0 and 1 ended")


def test_ranks_see_the_names_as_they_were_when_they_were_launched(kernel: Kernel, method: str) -> None:
    kernel.run("number, shared = 1, nbmp.zeros(1)")
    begun(kernel, f"--start-method {method} --name ctx --out seen", "number, float(shared[0])")
    kernel.run("number = 2\nshared[0] = 2")
    assert kernel.run("touch('go')\nctx.join()\nseen").value == "[(1, 2.0), (1, 2.0)]"


def test_launches_in_the_foreground_start_and_end_beside_it(kernel: Kernel) -> None:
    cell = kernel.run(
        "%%mpspawn -n 2 --bg --name ctx\n"
        "n = 0\nwhile not os.path.exists('go'):\n    print(n, flush=True)\n    n += 1\n    time.sleep(0.001)"
    )
    kernel.until(lambda: "[1] 1" in cell.text(), "they print")
    for _ in range(10):
        assert kernel.run("%%mpspawn -n 2\nprint('beside')\nrank").value == "[0, 1]"
    assert kernel.run("touch('go')\nctx.join()").value == "True"
    assert "beside" not in cell.text()


def test_the_name_is_bound_before_the_cell_blocks(kernel: Kernel) -> None:
    cell = kernel.start("%%mpspawn -n 2 --name kept\nprint('ready')\ntime.sleep(100)")
    kernel.until(lambda: cell.text().count("ready") == 2, "both ranks run")
    kernel.interrupt()
    kernel.until(lambda: bool(cell.ended), "the cell is done")
    assert kernel.run("[rank.state for rank in kept.ranks]").value == "['stopped', 'stopped']"
    kernel.run("%%mpspawn -n 2 --name kept\nif rank: raise ValueError\nrank", fails=True)
    assert kernel.run("kept.ranks[1].state").value == "'raised'"
    assert kernel.run("%%mpspawn -n 2 --name kept\nrank").value == "[0, 1]"
    assert kernel.run("kept.results").value == "[0, 1]"


def test_ranks_end_with_a_kernel_that_is_restarted(fresh_kernel: Kernel) -> None:
    fresh_kernel.run(f"%load_ext nbmp\n{DEFINED}")
    begun(fresh_kernel, "--name ctx", "pass")
    children = psutil.Process(fresh_kernel.pid).children(recursive=True)
    fresh_kernel.restart()
    assert until(lambda: none_runs(child.pid for child in children))
    assert fresh_kernel.run("'ctx' in globals()").value == "False"
