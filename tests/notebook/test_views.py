"""`nbmp.monitor` and a launch as the value of a cell; the buttons of the table."""

from __future__ import annotations

import pytest

from tests.notebook.kernels import Cell, Kernel

pytestmark = pytest.mark.may_keep("children")  # the module's kernel, which keeps a fork server

WIDGET = "application/vnd.jupyter.widget-view+json"
WAIT = """\
import nbmp, os, time
def wait(rank):
    print('up', flush=True)
    while not os.path.exists('stop'):
        time.sleep(0.01)
if os.path.exists('stop'): os.unlink('stop')
"""
STOP = "open('stop', 'w').close()\nctx.join()"


@pytest.fixture
def launching(kernel: Kernel) -> Cell:
    """The cell that has started two ranks, which run until there is a file `stop`."""
    kernel.run(WAIT)
    cell = kernel.run("ctx = nbmp.start_processes(wait, nprocs=2, join=False)")
    kernel.until(lambda: cell.text().count("up") == 2, "both ranks run")
    return cell


def shown(cell: Cell) -> list[dict[str, str]]:
    return [message.content["data"] for message in cell.of("display_data")]


def last_text(cell: Cell) -> str:
    return str(cell.of("display_data", "update_display_data")[-1].content["data"]["text/plain"])


def buttons(kernel: Kernel, label: str) -> list[str]:
    """Return the comms of the buttons with this label that were made last, in order."""
    opened = [m.content for m in kernel.messages if m.kind == "comm_open"]
    return [
        content["comm_id"] for content in opened if content["data"].get("state", {}).get("description", "") == label
    ]


def test_monitor_shows_the_table_once_more_and_both_end(kernel: Kernel, launching: Cell) -> None:
    again = kernel.run("nbmp.monitor(ctx)")
    (table,) = shown(again)
    assert {WIDGET, "text/plain"} <= set(table)
    assert table["text/plain"].startswith("2 ranks (fork): still running when this was saved")
    assert again.value is None
    kernel.run(STOP)
    for cell in (launching, again):
        kernel.until(lambda cell=cell: "2 done" in last_text(cell), "it has its last form", 10)  # type: ignore[misc]


def test_a_launch_as_the_value_of_a_cell_is_its_monitor(kernel: Kernel, launching: Cell) -> None:
    value = kernel.run("ctx")
    assert len(shown(value)) == 1
    assert not value.of("execute_result")
    both = kernel.run("nbmp.monitor()\nctx")
    assert len(shown(both)) == 1
    kernel.run(STOP)
    ended = kernel.run("ctx")
    (table,) = shown(ended)
    assert table.keys() == {"text/html", "text/plain"}
    assert "2 done" in table["text/plain"]


def test_monitor_of_a_pool_and_of_what_is_none(kernel: Kernel) -> None:
    cell = kernel.run("pool = nbmp.Pool(2)\npool.map(abs, range(2))\nnbmp.monitor(pool)")
    assert "2 workers" in shown(cell)[0]["text/plain"]
    kernel.run("pool.terminate()\npool.join()\npool._workers.finished.wait(20)")
    assert "a launch or a pool is needed, not int" in kernel.run("nbmp.monitor(3)", fails=True).error


def test_without_the_extension_the_value_is_a_table_of_text(fresh_kernel: Kernel) -> None:
    fresh_kernel.run("import nbmp\nctx = nbmp.start_processes(lambda rank: None, nprocs=2, join=False)\nctx.join()")
    cell = fresh_kernel.run("ctx")
    assert cell.value is not None
    assert "2 done" in cell.value
    assert not shown(cell)


def test_clicks_stop_one_rank_then_kill_one_that_does_not_obey(kernel: Kernel) -> None:
    kernel.run(
        WAIT + "import signal\ndef deaf(rank):\n    if rank == 1: signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "    wait(rank)"
    )
    before = len(buttons(kernel, "Stop"))
    cell = kernel.run("ctx = nbmp.start_processes(deaf, nprocs=3, join=False)")
    kernel.until(lambda: cell.text().count("up") == 3, "all run")
    kernel.until(lambda: len(buttons(kernel, "Stop")) == before + 3, "there are buttons")
    comms = buttons(kernel, "Stop")[before:]
    kernel.click(comms[0])
    kernel.run("deadline = time.time() + 20\nwhile not ctx.ranks[0].ended and time.time() < deadline: time.sleep(0.05)")
    kernel.click(comms[1])
    kernel.run("time.sleep(1)")
    assert kernel.run("[r.state for r in ctx.ranks]").value == "['stopped', 'running', 'running']"
    kernel.click(comms[1])
    kernel.run("deadline = time.time() + 20\nwhile not ctx.ranks[1].ended and time.time() < deadline: time.sleep(0.05)")
    assert kernel.run("[r.state for r in ctx.ranks]").value == "['stopped', 'stopped', 'running']"
    kernel.run("open('stop', 'w').close()\nctx.finished.wait(20)")
    assert "1 done, 2 stopped" in last_text(cell)


def test_a_click_tells_where_a_rank_is(kernel: Kernel) -> None:
    kernel.run(WAIT)
    before = len(buttons(kernel, "Where?"))
    cell = kernel.run("ctx = nbmp.start_processes(wait, nprocs=2, join=False)")
    kernel.until(lambda: len(buttons(kernel, "Where?")) == before + 2, "there are buttons")
    kernel.until(lambda: cell.text().count("up") == 2, "both run")
    kernel.click(buttons(kernel, "Where?")[-1])

    def told() -> bool:
        values = [str(m.content.get("data", {}).get("state", {}).get("value", "")) for m in kernel.messages]
        return any('<pre class="stack">' in value and "time.sleep(0.01)" in value for value in values)

    kernel.run("time.sleep(1)")
    kernel.until(told, "the table has the stack")
    kernel.run(STOP)


def test_launches_leave_no_widgets_behind(kernel: Kernel) -> None:
    kernel.run(
        "import ipywidgets\nall_of = ipywidgets.widgets.widget._instances if hasattr("
        "ipywidgets.widgets.widget, '_instances') else ipywidgets.Widget.widgets"
    )
    kernel.run("%%mpspawn -n 2\nimport time\ntime.sleep(1)")
    count = kernel.run("len(all_of)").value
    for _ in range(3):
        kernel.run("%%mpspawn -n 2\nimport time\ntime.sleep(1)")
    assert kernel.run("len(all_of)").value == count


@pytest.mark.slow
def test_at_16_ranks_its_thread_takes_two_hundredths_of_a_core_at_most(kernel: Kernel) -> None:
    kernel.run(
        "import nbmp, threading, time\n"
        "def chatty(rank):\n"
        "    for step in nbmp.progress(range(110)):\n        print('step', step)\n        time.sleep(0.1)\n"
        "def seconds():\n"
        "    (thread,) = [t for t in threading.enumerate() if t.name == 'nbmp-widget-updater']\n"
        "    return int(open(f'/proc/self/task/{thread.native_id}/schedstat').read().split()[0]) / 1e9"
    )
    kernel.run("ctx = nbmp.start_processes(chatty, nprocs=16, join=False)\ntime.sleep(2)")
    value = kernel.run(
        "begun, before = time.monotonic(), seconds()\ntime.sleep(7)\n"
        "share = (seconds() - before) / (time.monotonic() - begun)\nctx.join()\nshare"
    ).value
    assert float(value or "nan") <= 0.02
