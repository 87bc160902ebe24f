"""B37: the table of ranks moves while the cell runs, and ends right whatever happens."""

from __future__ import annotations

import re

import pytest

from tests.notebook.kernels import Kernel, tables

pytestmark = pytest.mark.may_keep("descriptors")  # jupyter_client keeps an event loop in this process

FORMS = ("display_data", "update_display_data")


def last_form(html: str) -> str:
    """Return the table's text, one row a line."""
    html = re.sub(r"<style>.*?</style>", "", html, flags=re.S)
    rows = re.sub("<tr[^>]*>", "\n", html.replace("\n", " "))
    return "\n".join(" ".join(re.sub(r"<[^>]*>", " ", row).split()) for row in rows.splitlines())


def test_b37_widget_that_does_not_move_while_the_cell_runs(fresh_kernel: Kernel) -> None:
    fresh_kernel.run("%load_ext nbmp\nimport time\ndef step(rank): time.sleep(1 + rank)")
    cell = fresh_kernel.run("mp.spawn(step, nprocs=3)")
    moved = [message for message in fresh_kernel.messages if list(tables([message]))]
    assert {message.cell for message in moved} == {cell.id}
    moments = [message.when - cell.started for message in moved if message.when < cell.ended]
    assert [moment for moment in moments if moment < 1.5]
    assert [moment for moment in moments if 1.5 < moment < 2.9]
    shown = [str(message.content["data"]) for message in cell.of(*FORMS)]
    assert "3 done" in shown[-1]


ENDS = {
    "os.kill(os.getpid(), signal.SIGKILL)": "killed SIGKILL",
    "os._exit(7)": "exit code 7",
    "sys.exit(9)": "exit code 9",
    "raise ValueError('no')": "ValueError",
}


def test_b37_last_picture_is_right_however_ranks_end_and_no_thread_stays(fresh_kernel: Kernel) -> None:
    fresh_kernel.run("%load_ext nbmp")
    for how, told in ENDS.items():
        cell = fresh_kernel.run(
            f"def bad(rank):\n    if rank == 1: {how}\n    time.sleep(30)\n"
            "try: mp.spawn(bad, nprocs=3)\nexcept mp.ProcessException: pass"
        )
        rows = last_form(cell.of(*FORMS)[-1].content["data"]["text/html"]).splitlines()
        assert any(row.startswith(f"1 {told}") for row in rows), rows
        assert [row[:9] for row in rows if row[:1] in ("0", "2")] == ["0 stopped", "2 stopped"]
    fresh_kernel.run(
        "from IPython.display import clear_output\nmp.start_processes(time.sleep, nprocs=2); clear_output()"
    )
    fresh_kernel.run(
        "assert not [t for t in threading.enumerate() if 'nbmp' in t.name.lower() and 'widget' in t.name.lower()]"
    )


def test_b37_an_interrupt_ends_it_right_and_other_cells_get_nothing(fresh_kernel: Kernel) -> None:
    fresh_kernel.run("%load_ext nbmp\nimport time\ndef long(rank):\n    print('up', flush=True)\n    time.sleep(60)")
    cell = fresh_kernel.start("mp.spawn(long, nprocs=3)")
    fresh_kernel.until(lambda: cell.text().count("up") == 3, "all run")
    fresh_kernel.interrupt()
    fresh_kernel.until(lambda: bool(cell.ended), "the cell is done", 15)
    assert "3 stopped" in str(cell.of(*FORMS)[-1].content["data"]["text/plain"])
    after = fresh_kernel.run("time.sleep(1)\n1 + 1")
    assert not after.of(*FORMS)
    assert after.value == "2"
