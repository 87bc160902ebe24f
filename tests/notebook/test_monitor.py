"""The table of ranks: it moves while the cell runs, ends in its last form, and leaves nothing behind."""

from __future__ import annotations

import re

import pytest

from tests.notebook.kernels import Cell, Kernel, Message, tables

pytestmark = pytest.mark.may_keep("children")  # the module's kernel, which keeps a fork server

IMPORTS = "import nbmp, os, signal, threading, time\n"
WIDGET = "application/vnd.jupyter.widget-view+json"


def during(kernel: Kernel, cell: Cell) -> list[Message]:
    """Return everything published while the cell ran."""
    return [message for message in kernel.messages if cell.started <= message.when <= cell.ended]


def last_form(cell: Cell) -> dict[str, str]:
    """Return the table's last bundle."""
    update = cell.of("update_display_data")[-1]
    data: dict[str, str] = update.content["data"]
    return data


def readable(html: str) -> str:
    """Return the HTML as text, one table row a line."""
    html = re.sub(r"<style>.*?</style>", "", html, flags=re.S)
    rows = re.sub("<tr[^>]*>", "\n", html.replace("\n", " "))
    return "\n".join(" ".join(re.sub(r"<[^>]*>", " ", row).split()) for row in rows.splitlines())


def test_it_moves_while_the_cell_runs(kernel: Kernel) -> None:
    kernel.run(IMPORTS + "def step(rank):\n    time.sleep(1 + rank)")
    cell = kernel.run("nbmp.spawn(step, nprocs=3)")
    moments = [m.when - cell.started for m in during(kernel, cell) if list(tables([m]))]
    assert len([moment for moment in moments if moment < 1.5]) >= 1
    assert len([moment for moment in moments if 1.5 < moment < 2.9]) >= 1
    assert len(moments) >= 4
    assert max(sum(start <= m < start + 1 for m in moments) for start in moments) <= 7
    assert "3 done" in readable(last_form(cell)["text/html"])
    assert "3 done" in last_form(cell)["text/plain"]


def test_the_killed_rank_is_named_and_the_others_are_stopped(kernel: Kernel) -> None:
    kernel.run(
        IMPORTS + "def bad(rank):\n    if rank == 1:\n        time.sleep(0.5)\n"
        "        print('last words')\n        os.kill(os.getpid(), signal.SIGKILL)\n    time.sleep(60)"
    )
    cell = kernel.run(
        "try:\n    nbmp.spawn(bad, nprocs=3)\nexcept nbmp.ProcessExitedException as e:\n    print(e.signal_name)"
    )
    rows = readable(last_form(cell)["text/html"]).splitlines()
    head, _, first, _, second, folded, third, _ = rows
    assert first.startswith("0 stopped")
    assert second.startswith("1 killed SIGKILL")
    assert second.endswith("last words")
    assert "SIGKILL comes from outside" in folded
    assert third.startswith("2 stopped")
    assert "1 failed 2 stopped" in head


def test_a_rank_that_raised_shows_type_and_message(kernel: Kernel) -> None:
    cell = kernel.run("%%mpspawn -n 2\nif rank:\n    raise KeyError('<b>missing</b>')", fails=True)
    html = last_form(cell)["text/html"]
    assert "KeyError" in readable(html)
    assert "&lt;b&gt;missing&lt;/b&gt;" in html
    assert "<b>missing" not in html


def test_what_a_rank_prints_is_escaped(kernel: Kernel) -> None:
    cell = kernel.run("%%mpspawn -n 1\nprint('<script>alert(1)</script>')")
    assert "<script>" not in last_form(cell)["text/html"]
    assert "&lt;script&gt;" in last_form(cell)["text/html"]


def test_an_interrupt_leaves_a_table_that_says_stopped(kernel: Kernel) -> None:
    cell = kernel.start("%%mpspawn -n 2\nprint('up', flush=True)\nimport time\ntime.sleep(60)")
    kernel.until(lambda: cell.text().count("up") == 2, "both ranks run")
    kernel.interrupt()
    kernel.until(lambda: bool(cell.ended), "the cell is done", 15)
    assert cell.status == "error"
    assert "KeyboardInterrupt" in cell.error
    assert "2 stopped" in readable(last_form(cell)["text/html"])
    assert kernel.run("%%mpspawn -n 2\nrank").value == "[0, 1]"


def test_it_comes_before_the_first_line_and_under_its_cell(kernel: Kernel) -> None:
    cell = kernel.run("%%mpspawn -n 2\nprint('line')")
    shown = [m.kind for m in cell.of("display_data", "stream")]
    assert shown[0] == "display_data"
    (table,) = cell.of("display_data")
    assert {WIDGET, "text/plain"} <= set(table.content["data"])
    assert last_form(cell).keys() == {"text/html", "text/plain"}


def test_no_thread_is_left_when_the_cell_is_done(kernel: Kernel) -> None:
    kernel.run("%%mpspawn -n 2\nimport time\ntime.sleep(0.3)")
    left = kernel.run("import threading\n[t.name for t in threading.enumerate() if 'nbmp-widget' in t.name]")
    assert left.value == "[]"


def test_ranks_that_outlive_their_cell_keep_their_table_there(kernel: Kernel) -> None:
    kernel.run(IMPORTS + "def wait(rank):\n    while not os.path.exists('stop'):\n        time.sleep(0.01)")
    first = kernel.run(
        "if os.path.exists('stop'): os.unlink('stop')\nctx = nbmp.start_processes(wait, nprocs=2, join=False)"
    )
    assert not first.of("update_display_data")
    second = kernel.run("open('stop', 'w').close()\nctx.join()")
    kernel.until(lambda: bool(first.of("update_display_data")), "the last form is under the first cell", 10)
    assert "2 done" in last_form(first)["text/plain"]
    assert not second.of("display_data", "update_display_data")


def test_no_monitor_shows_none(kernel: Kernel) -> None:
    assert not kernel.run("%%mpspawn -n 2 --no-monitor\npass").of("display_data", "update_display_data")


def test_without_the_extension_lines_are_routed_and_nothing_is_drawn(fresh_kernel: Kernel) -> None:
    cell = fresh_kernel.run("import nbmp\nnbmp.start_processes(lambda rank: print('hi'), nprocs=1)")
    assert cell.text() == "[0] hi\n"
    assert not cell.of("display_data")


def test_unloading_takes_magic_and_tables_away(fresh_kernel: Kernel) -> None:
    fresh_kernel.run("%load_ext nbmp")
    fresh_kernel.run("%unload_ext nbmp")
    assert "not found" in fresh_kernel.run("%%mpspawn -n 1\npass", fails=True).error
    cell = fresh_kernel.run("import nbmp\nnbmp.start_processes(lambda rank: None, nprocs=1)")
    assert not cell.of("display_data")
    fresh_kernel.run("%reload_ext nbmp")
    assert fresh_kernel.run("%%mpspawn -n 1\nrank").value == "[0]"


def test_without_ipywidgets_the_table_is_html(fresh_kernel: Kernel) -> None:
    fresh_kernel.run("import sys\nsys.modules['ipywidgets'] = None\n%load_ext nbmp")
    cell = fresh_kernel.run("%%mpspawn -n 2\nimport time\ntime.sleep(1.2)\nrank")
    assert cell.value == "[0, 1]"
    assert len(list(tables(cell.messages))) >= 2
    assert "2 done" in last_form(cell)["text/plain"]


def test_a_table_that_fails_does_not_touch_the_launch(fresh_kernel: Kernel) -> None:
    fresh_kernel.run(
        "%load_ext nbmp\nimport nbmp.notebook.ranks.monitor as m\n"
        "def broken(*_):\n    raise OSError\nm.html_table = broken"
    )
    assert fresh_kernel.run("%%mpspawn -n 2\nprint('x')\nrank").value == "[0, 1]"


def test_a_table_that_fails_later_does_not_either(fresh_kernel: Kernel) -> None:
    fresh_kernel.run(
        "%load_ext nbmp\nimport nbmp.notebook.ranks.monitor as m\nm.Sampler.snapshot_ = m.Sampler.snapshot\n"
        "calls = []\ndef broken(self):\n    calls.append(1)\n    if len(calls) > 1:\n        raise OSError\n"
        "    return self.snapshot_()\nm.Sampler.snapshot = broken"
    )
    assert fresh_kernel.run("%%mpspawn -n 2\nimport time\ntime.sleep(0.6)\nrank").value == "[0, 1]"
    assert (
        fresh_kernel.run("import threading\n[t for t in threading.enumerate() if 'nbmp-widget' in t.name]").value
        == "[]"
    )


def test_showing_it_costs_a_launch_little(kernel: Kernel) -> None:
    kernel.run(
        "import nbmp.notebook.ranks.monitor as m, statistics\nm_watch = m.watch\ncosts = []\n"
        "def timed(*given):\n    begun = time.thread_time()\n    m_watch(*given)\n"
        "    costs.append(time.thread_time() - begun)\n"
        "import time\nm.watch = timed"
    )
    for _ in range(5):
        kernel.run("%%mpspawn -n 4\npass")
    milliseconds = float(kernel.run("m.watch = m_watch\n1000 * statistics.median(costs[1:])").value or "nan")
    assert milliseconds < 20
