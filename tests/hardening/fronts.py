"""The three ways to start ranks, each having one cell of the failure matrix happen and telling what a person gets."""

from __future__ import annotations

import contextlib
import importlib
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbmp
from tests.hardening import doom
from tests.notebook.kernels import Kernel, plain
from tests.scripts import gone_soon
from tests.waiting import until


@dataclass
class Told:
    """What a person gets."""

    error: str = ""
    """Its class; empty when there is none."""
    text: str = ""
    """What is shown of it."""
    result: Any = None
    written: str | None = None
    """What the rank wrote, where that can be asked for."""
    seconds: float = 0.0


def trap_of(where: str, how: str) -> doom.Trap | None:
    when = {"pickling the task": "pickled", "unpickling the task": "unpickled"}.get(where)
    return None if when is None else doom.Trap(how, when)


def imported(how: str) -> Any:
    """Return the function of a module that does it when a rank imports it."""
    importlib.invalidate_caches()
    return importlib.import_module(doom.module_name(how)).function


def by_start_processes(method: str, where: str, how: str) -> Told:
    told, context = Told(), None
    doom.write_module(how)
    with told_what_is_raised(told), pressing_stop(how):
        if where == "importing" and method != "fork":
            context = nbmp.start_processes(imported(how), (), 2, False, start_method=method)
        else:
            args = (where, how, trap_of(where, how))
            context = nbmp.start_processes(doom.work, args, 2, False, start_method=method)
        assert context is not None
        context.join()
        told.result = context.results == ["ok", "ok"]
    Path(doom.RELEASE).touch()
    if context is not None:
        assert gone_soon(filter(None, context.pids()))
        assert context.finished.wait(20)
        told.written = context.output(1)
    return told


def by_pool(method: str, where: str, how: str) -> Told:
    told = Told()
    doom.write_module(how)
    with nbmp.Pool(2, start_method=method) as pool:
        others = pool.map_async(abs, range(4))
        with told_what_is_raised(told), pressing_stop(how, unless=where in ("in a thread of the rank", "at exit")):
            if where == "importing" and method != "fork":
                told.result = pool.apply(imported(how)) == "ok"
            else:
                told.result = pool.apply(doom.task, (where, how, trap_of(where, how))) == "ok"
        if where == "unpickling the result":
            Path(doom.RELEASE).touch()  # it is the pool's own thread that hangs
        assert others.get(20) == [0, 1, 2, 3]
        pids = pool._workers.pids()
        if where == "at exit":
            pool.close()
            pool.join()
        else:
            Path(doom.RELEASE).touch()
            assert pool.map_async(abs, range(-2, 2)).get(20) == [2, 1, 0, 1]
            pids += pool._workers.pids()
            pool.terminate()
            pool.join()
    assert gone_soon(pids)
    return told


def by_mpspawn(kernel: Kernel, folder: Path, method: str, where: str, how: str) -> Told:
    kernel.run(SET_UP.format(folder=str(folder), where=where, how=how))
    body = {"pickling the task": "trap; 'ok'", "unpickling the task": "trap; 'ok'", "importing": IMPORT}
    call = body.get(where, "doom.work(rank, where, how)")
    begun = time.monotonic()
    line = f"%%mpspawn -n 2 --start-method {method} --out results"
    cell = kernel.start(f"{line}\n{call.format(name=doom.module_name(how))}")
    if how == "hang":
        kernel.until((folder / doom.REACHED).exists, "the rank hangs")
        kernel.interrupt()
    kernel.until(lambda: bool(cell.ended), "the cell is done")
    told = Told(seconds=cell.ended - begun, written=cell.text() + cell.text("stderr"))
    if cell.status == "error":
        shown = cell.of("error")
        told.text = cell.error
        told.error = shown[0].content["ename"] if shown else told.text.split(":")[0]
    else:
        kernel.run("assert results == ['ok', 'ok'], results")
        told.result = True
    (folder / doom.RELEASE).touch()
    kernel.run(FORGET)
    kernel.run(LOOK)
    return told


IMPORT = """
if rank == 1:
    import {name}
'ok'
"""

SET_UP = """
import os, sys, importlib
from tests import leaks, waiting
from tests.hardening import doom, fronts
where, how, folder = {where!r}, {how!r}, {folder!r}
os.chdir(folder)
sys.path.insert(0, folder)
importlib.invalidate_caches()
doom.write_module(how)
trap = fronts.trap_of(where, how)
holdings = leaks.Holdings.now()
"""

FORGET = """
from nbmp.launching import last
last._forget()  # a notebook keeps its last launch; IPython the last error, which has that in its frames
sys.last_value = sys.last_traceback = sys.last_exc = get_ipython().last_execution_result = None
sys.path.remove(folder)
"""

LOOK = """
results = None
def left_behind():  # but what zmq has for each thread that shows something, and IPython's history
    kernels = ("[eventfd]", "history.sqlite")
    return [one for one in leaks.leftovers(holdings, patience=0.1) if not any(name in one for name in kernels)]
waiting.until(lambda: not left_behind(), 5)
left = left_behind()
assert not left, left
"""


@contextlib.contextmanager
def told_what_is_raised(told: Told) -> Iterator[None]:
    begun = time.monotonic()
    try:
        yield
    except BaseException as error:
        told.error = type(error).__name__
        shown = error._render_traceback_() if isinstance(error, nbmp.ProcessException) else []
        told.text = plain("\n".join([*shown, "".join(traceback.format_exception(error))]))
        told.result = None
    told.seconds = time.monotonic() - begun


@contextlib.contextmanager
def pressing_stop(how: str, *, unless: bool = False) -> Iterator[None]:
    """Interrupt this process' main thread once something hangs."""

    def press() -> None:
        if until(lambda: os.path.exists(doom.REACHED), 60):
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    presser = threading.Thread(target=press)
    wanted = how == "hang" and not unless
    if wanted:
        presser.start()
    try:
        yield
    finally:
        if wanted:
            presser.join()


if __name__ == "__main__":  # a cell in which this process, the launching one, is gone
    front, *cell = sys.argv[1:]
    sys.path.insert(0, os.getcwd())
    print({"start_processes": by_start_processes, "Pool": by_pool}[front](*cell))
