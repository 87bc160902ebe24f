"""The failure matrix, cell by cell: see `failure_table`.

The whole is a few hundred cells. Without --all-forms `spawn` is left out (see tests/forms.py), and where the launching
process itself is gone the cells of one way only are run, and none that takes a kernel of its own.
"""

from __future__ import annotations

import re
import subprocess
import sys
from functools import partial
from pathlib import Path

import psutil
import pytest
from _pytest.mark import ParameterSet

from tests import scripts
from tests.hardening import failure_table, fronts
from tests.hardening.failure_table import FINE, FRONTS, GONE, METHODS, NO_SENSE, SECONDS, TABLE, TRAVEL, WHO
from tests.notebook.conftest import start
from tests.notebook.kernels import Kernel

IN_A_KERNEL = pytest.mark.may_keep("descriptors")  # jupyter_client keeps an event loop in this process


def parameters(*wanted: str, gone: bool = False) -> list[ParameterSet]:
    """Return the cells of these ways to start ranks, those in which the launching process is gone or the others."""
    found = []
    for cell in failure_table.cells():
        front, method, where, how = cell
        is_gone = failure_table.row(where, how, front, method).launch[0] == GONE
        if front in wanted and is_gone == gone:
            redundant = how != "SIGKILL" or front == "%%mpspawn" if gone else front == "%%mpspawn" and method == "fork"
            found.append(pytest.param(*cell, marks=[pytest.mark.whole] if redundant else []))
    return found


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Be in a folder of the test's own, whose modules can be imported."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    for seconds in ("pools.worker.LEAVE_SECONDS", "launching.stopping.KILL_SECONDS"):
        monkeypatch.setattr(f"nbmp.{seconds}", 0.5)
    for name in [name for name in sys.modules if name.startswith("doomed_")]:
        monkeypatch.delitem(sys.modules, name)
    return tmp_path


@pytest.mark.parametrize(("front", "method", "where", "how"), parameters("start_processes", "Pool"))
def test_what_goes_wrong_is_told(front: str, method: str, where: str, how: str, folder: Path) -> None:
    told = (fronts.by_pool if front == "Pool" else fronts.by_start_processes)(method, where, how)
    assert_as_promised(told, front, method, where, how)


def test_new_interpreter_without_memory_tells_of_it(folder: Path) -> None:
    """It has not imported yet what the telling takes."""
    cell = ("start_processes", "spawn", "running", "out of memory")
    assert_as_promised(fronts.by_start_processes(*cell[1:]), *cell)


@IN_A_KERNEL
@pytest.mark.parametrize(("front", "method", "where", "how"), parameters("%%mpspawn"))
def test_what_goes_wrong_in_a_cell_is_told(
    front: str, method: str, where: str, how: str, folder: Path, kernel: Kernel
) -> None:
    told = fronts.by_mpspawn(kernel, folder, method, where, how)
    assert_as_promised(told, front, method, where, how)


def assert_as_promised(told: fronts.Told, front: str, method: str, where: str, how: str) -> None:
    row = failure_table.row(where, how, front, method)
    error, *named = row.pool if front == "Pool" else row.launch
    if front == "%%mpspawn" and error == TRAVEL:
        error = "UsageError"  # a line without a traceback, as for a wrong option
    assert (told.error, told.result) == (error, True if error == FINE else None), told
    assert told.seconds < SECONDS
    for words in (*named, WHO.get(error, "")):
        assert re.search(words, told.text), told.text
    assert front == "Pool" or row.written in (told.written or "")


@IN_A_KERNEL
@pytest.mark.parametrize(("front", "method", "where", "how"), parameters(*FRONTS, gone=True))
def test_nothing_outlives_a_launching_process_that_it_happens_to(
    front: str, method: str, where: str, how: str, tmp_path: Path
) -> None:
    run = in_a_kernel if front == "%%mpspawn" else partial(in_a_script, front)
    code = run(tmp_path, method, where, how)
    assert code == int(failure_table.row(where, how, front, method).launch[1])


def in_a_script(front: str, folder: Path, method: str, where: str, how: str) -> int:
    """Have it happen to a script; return its exit code once nothing of it runs."""
    command = [sys.executable, "-m", fronts.__name__, front, method, where, how]
    with subprocess.Popen(command, cwd=folder, env=scripts.environment(), stdin=subprocess.DEVNULL) as script:
        code = script.wait(60)
    assert scripts.nobody_is_left(folder)
    return code


def in_a_kernel(folder: Path, method: str, where: str, how: str) -> int:
    """Have it happen to a kernel; return its exit code once nothing of it runs."""
    kernel = start(folder)
    try:
        kernel.run("%load_ext nbmp")
        kernel.run(fronts.SET_UP.format(folder=str(folder), where=where, how=how))
        body = "trap" if where == "pickling the task" else "doom.work(rank, where, how)"
        kernel.start(f"%%mpspawn -n 2 --start-method {method}\n{body}")
        code = psutil.Process(kernel.pid).wait(60)
        assert scripts.nobody_is_left(folder)
    finally:
        kernel.close()
    assert not kernel.left_behind()
    return int(code)


def test_table_has_each_place_and_each_way() -> None:
    ways = list(TABLE["running"])
    assert all(list(rows) == ways for rows in TABLE.values())
    assert (len(TABLE), len(ways)) == (8, 8)
    assert len(failure_table.cells()) == 8 * 8 * 9 - len(NO_SENSE) * 8
    assert {method for _, _, method in NO_SENSE} <= set(METHODS)
