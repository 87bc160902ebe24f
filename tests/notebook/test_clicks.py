"""Clicks on buttons while a cell runs, in a kernel; the test is the front end."""

from __future__ import annotations

import pytest

from tests.notebook.kernels import Kernel

DEFINED = """\
import ipywidgets, nbmp, os, threading, time
from nbmp.notebook.live import clicks
def wait_for(name):
    while not os.path.exists(name):
        time.sleep(0.01)
    os.unlink(name)
def touch(name):
    open(name, 'w').close()
"""


@pytest.fixture(scope="module")
def subshell(shared_kernel: Kernel) -> str | None:
    shared_kernel.run(DEFINED)
    return shared_kernel.subshell()


def made(kernel: Kernel, action: str, options: str = "") -> str:
    """Make a button, `button`, with this action and return its comm."""
    cell = kernel.run(f"button = clicks.button(ipywidgets, 'Go', {action}, tooltip='what it does'{options})")
    assert not cell.error
    return kernel.run("print(button.comm.comm_id)").text().strip()


def test_a_click_is_handled_while_a_cell_runs_where_there_are_subshells(kernel: Kernel, subshell: str | None) -> None:
    comm = made(kernel, "lambda: touch('clicked')")
    if subshell is None:
        kernel.click(comm)
        kernel.run("wait_for('clicked')")
        return
    cell = kernel.start("print('begun'); wait_for('clicked')")
    kernel.until(lambda: "begun" in cell.text(), "the cell runs")
    kernel.click(comm, subshell)
    kernel.until(lambda: bool(cell.ended), "the click ends the cell")


def test_a_click_is_handled_while_a_cell_waits_for_ranks_whatever_the_front_end_sends(kernel: Kernel) -> None:
    comm = made(kernel, "lambda: touch('clicked')")
    newer = "hasattr(button.comm, '_reply_subshell_for') or hasattr(get_ipython().kernel, 'msg_queue')"
    if kernel.run(newer).value == "False":
        pytest.skip("ipykernel 7.0 to 7.3 has no way in")
    cell = kernel.start("nbmp.launch(lambda rank: print('begun') or wait_for('clicked'))\nprint('after')")
    kernel.until(lambda: "begun" in cell.text(), "the rank runs")
    kernel.click(comm)
    later = kernel.start("print('later')")
    kernel.until(lambda: bool(cell.ended and later.ended), "the click ends the cell")
    assert (cell.text(), later.text()) == ("[0] begun\nafter\n", "later\n")


def test_a_change_of_a_text_field_arrives_while_a_cell_runs(kernel: Kernel, subshell: str | None) -> None:
    comm = kernel.run(
        "field = ipywidgets.Text(); clicks.arrive_at_once(field)\n"
        "field.observe(lambda change: touch(change['new']), 'value'); print(field.comm.comm_id)"
    ).text()
    cell = kernel.start("print('begun')\nif SUBSHELL: wait_for('typed')".replace("SUBSHELL", str(bool(subshell))))
    kernel.until(lambda: "begun" in cell.text(), "the cell runs")
    kernel.touch(comm.strip(), {"method": "update", "state": {"value": "typed"}, "buffer_paths": []}, subshell)
    kernel.until(lambda: bool(cell.ended), "what is typed ends the cell")
    if subshell is None:
        kernel.run("wait_for('typed')")


def test_a_slow_action_holds_up_no_other_and_runs_once_at_a_time(kernel: Kernel, subshell: str | None) -> None:
    slow = made(kernel, "lambda: (touch('begun'), wait_for('end'))")
    kernel.run("slow = button")
    quick = made(kernel, "lambda: touch('quick')")
    kernel.click(slow, subshell)
    kernel.run("wait_for('begun')")
    kernel.click(quick, subshell)
    kernel.run("wait_for('quick')")
    assert kernel.run("slow.disabled, button.disabled").value == "(True, False)"
    kernel.run("touch('end')\nwhile slow.disabled: time.sleep(0.01)")


def test_an_action_that_fails_is_told_on_its_button_and_nowhere_else(kernel: Kernel, subshell: str | None) -> None:
    comm = made(kernel, "lambda: touch('tried') or [][0]")
    kernel.click(comm, subshell)
    kernel.run("wait_for('tried')\nwhile button.button_style != 'danger' or button.disabled: time.sleep(0.01)")
    kernel.run("while button.tooltip == 'what it does': time.sleep(0.01)")
    assert kernel.run("button.tooltip").value == "'IndexError: list index out of range'"
    assert not [message for message in kernel.messages if message.kind in ("error", "stream") and not message.cell]


def test_an_action_that_fails_can_be_told_elsewhere(kernel: Kernel, subshell: str | None) -> None:
    comm = made(kernel, "lambda: 1 / 0", ", report=lambda text: told.append(text)")
    kernel.run("told = []")
    kernel.click(comm, subshell)
    kernel.run("while len(told) < 2: time.sleep(0.01)")
    assert kernel.run("told").value == "['', 'ZeroDivisionError: division by zero']"


def test_a_click_leaves_the_figures_of_the_cell_that_runs_alone(kernel: Kernel, subshell: str | None) -> None:
    comm = made(kernel, "lambda: touch('clicked')")
    ran = kernel.run(
        "def after(): ran.append(threading.current_thread().name)\n"
        "ran = []; get_ipython().events.register('post_execute', after)"  # as matplotlib's does, which shows figures
    )
    assert not ran.error
    kernel.run("ran.clear()")
    kernel.click(comm, subshell)
    kernel.run("wait_for('clicked')")
    assert kernel.run("get_ipython().events.unregister('post_execute', after); len(ran)").value == "2"
