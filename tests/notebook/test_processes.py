"""`nbmp.Process`, locks and managers in a notebook: functions of cells, output in the cell, the stop button."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.notebook.kernels import Kernel
from tests.waiting import until

pytestmark = pytest.mark.may_keep("children")  # the module's kernel, which keeps a fork server


def test_function_of_a_cell_prints_into_the_cell_that_started_it(kernel: Kernel, method: str) -> None:
    kernel.run(
        f"import nbmp as mp\ncontext = mp.get_context('{method}')\n"
        "def work(queue, lock):\n    with lock:\n        print('at work')\n        queue.put(mp.current_process().name)"
    )
    cell = kernel.run(
        "queue, lock = context.Queue(), mp.Lock()\n"
        "process = context.Process(target=work, args=(queue, lock), name='worker')\n"
        "process.start()\nprocess.join()\nqueue.get(), process.exitcode"
    )
    assert cell.text() == "[worker] at work\n"
    assert cell.value == "('worker', 0)"


def test_exception_shows_the_line_of_the_cell_and_the_kernel_goes_on(kernel: Kernel, method: str) -> None:
    cell = kernel.run(
        f"import nbmp as mp\n"
        "def fail():\n    numbers = [1, 2]\n    return numbers[5]\n"
        f"process = mp.get_context('{method}').Process(target=fail, name='loser')\n"
        "process.start()\nprocess.join()\nprocess.exitcode"
    )
    told = cell.text("stderr")
    assert cell.value == "1"
    assert told.startswith("[loser] Process loser:\n[loser] Traceback (most recent call last):\n")
    assert "return numbers[5]" in told
    assert told.endswith("[loser] IndexError: list index out of range\n")
    assert "nbmp" not in told
    assert re.search(r"^\[loser\]   Cell In\[\d+\], line 4, in fail$", told, re.MULTILINE)


def test_manager_and_a_subclass_in_cells(kernel: Kernel, method: str) -> None:
    kernel.run(
        f"import nbmp as mp\ncontext = mp.get_context('{method}')\n"
        "class Doubler(context.Process):\n"
        "    def __init__(self, shared, n):\n        super().__init__()\n        self.shared, self.n = shared, n\n"
        "    def run(self):\n        self.shared[self.n] = 2 * self.n"
    )
    cell = kernel.run(
        "with context.Manager() as manager:\n"
        "    shared = manager.dict()\n"
        "    processes = [Doubler(shared, n) for n in range(3)]\n"
        "    for process in processes:\n        process.start()\n"
        "    for process in processes:\n        process.join()\n"
        "    result = dict(sorted(shared.items()))\nresult"
    )
    assert cell.value == "{0: 0, 1: 2, 2: 4}"


def test_stop_button_while_joining_ends_the_processes(kernel: Kernel, method: str) -> None:
    kernel.run(
        f"import nbmp as mp, time\ncontext = mp.get_context('{method}')\n"
        "def long():\n    print('begun')\n    time.sleep(100)\n"
        "processes = [context.Process(target=long) for _ in range(2)]"
    )
    cell = kernel.start(
        "for process in processes:\n    process.start()\nprint('joining')\n"
        "for process in processes:\n    process.join()"
    )
    kernel.until(lambda: cell.text().count("begun") == 2 and "joining" in cell.text(), "both have begun")
    kernel.interrupt()
    kernel.until(lambda: bool(cell.ended), "the cell is done")
    assert "KeyboardInterrupt" in cell.error
    after = kernel.run("for process in processes:\n    process.join(20)\n[process.exitcode for process in processes]")
    assert after.value == "[1, 1]"


def test_name_of_a_lock_goes_when_the_kernel_is_killed_with_its_process_group(fresh_kernel: Kernel) -> None:
    name = fresh_kernel.run("import nbmp\nlock = nbmp.Lock()\nlock._semlock.name").value or ""
    file = Path(f"/dev/shm/sem.{name.strip(chr(39)).removeprefix('/')}")
    assert file.exists()
    fresh_kernel.close()
    assert until(lambda: not file.exists(), 10)
