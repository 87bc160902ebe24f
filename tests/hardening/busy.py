"""A notebook's process at its busiest: threads that hold every kind of lock that a fork copies in the state it is in.

    logging      records to a file and a stream, all the time: locks of the handlers, and of the stream's buffer
    imports      a module that takes its time: its lock, and the module half there
    BLAS         products on OpenBLAS' threads
    zmq          a context of its own with traffic
    sqlite       transactions, as IPython's history has them
    asyncio      a loop with an executor
    matplotlib   figures
    tqdm         bars, which have a lock for all of them
    nbmp         messages to itself, arrays in them

`alive(rank)` uses all of them in a rank.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import io
import logging
import os
import sqlite3
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import nbmp
from tests.waiting import until

SLOW = "module_that_takes_its_time"
_log = logging.getLogger("tests.busy")
_stop = threading.Event()


def _logs(folder: Path) -> None:
    _log.warning("a line of some length %s", "x" * 200)


def _imports(folder: Path) -> None:
    sys.modules.pop(SLOW, None)
    importlib.import_module(SLOW)


def _multiplies(folder: Path) -> None:
    a = np.ones((300, 300))
    assert (a @ a)[0, 0] == 300


def _sends(folder: Path) -> None:
    import zmq

    context = zmq.Context()
    with context.socket(zmq.PAIR) as one, context.socket(zmq.PAIR) as other:
        one.bind("inproc://busy")
        other.connect("inproc://busy")
        for _ in range(100):
            one.send(b"x" * 100)
            other.recv()
    context.term()


def _remembers(folder: Path) -> None:
    with contextlib.closing(sqlite3.connect(folder / f"history{os.getpid()}.sqlite")) as base:
        base.execute("create table if not exists lines (line text)")
        for _ in range(10):
            base.execute("insert into lines values (?)", ("x" * 100,))
            base.commit()


def _loops(folder: Path) -> None:
    async def work() -> None:
        loop = asyncio.get_running_loop()
        await asyncio.gather(*(loop.run_in_executor(None, time.sleep, 0.001) for _ in range(5)))

    asyncio.run(work())


def _draws(folder: Path) -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(1, 1))
    figure.subplots().plot([1, 2, 1])
    canvas: Any = FigureCanvasAgg(figure)
    canvas.print_png(io.BytesIO())


def _counts(folder: Path) -> None:
    from tqdm import tqdm

    for _ in tqdm(range(50), file=io.StringIO(), mininterval=0, miniters=1):
        pass


def _messages(folder: Path) -> None:
    q = nbmp.Queue()
    q.put((np.zeros(100_000), nbmp.ones(10), b"x"))
    assert q.get(timeout=60)[1][0] == 1


LOADS: dict[str, Callable[[Path], None]] = {
    "logging": _logs,
    "imports": _imports,
    "BLAS": _multiplies,
    "zmq": _sends,
    "sqlite": _remembers,
    "asyncio": _loops,
    "matplotlib": _draws,
    "tqdm": _counts,
    "nbmp": _messages,
}


@contextlib.contextmanager
def busy(folder: Path, *names: str) -> Iterator[dict[str, int]]:
    """Have a thread for each of these loads, all of them without names; yields how often each has gone round."""
    (folder / f"{SLOW}.py").write_text("import time\ntime.sleep(0.01)\nready = True\n")
    sys.path.insert(0, str(folder))
    sys.dont_write_bytecode = True
    handlers = [logging.FileHandler(folder / "log"), logging.StreamHandler(open(os.devnull, "w"))]  # noqa: SIM115
    for handler in handlers:
        _log.addHandler(handler)
    _log.propagate = False
    rounds = dict.fromkeys(names or LOADS, 0)
    _stop.clear()

    def go_round(name: str) -> None:
        while not _stop.is_set():
            LOADS[name](folder)
            rounds[name] += 1
            time.sleep(0.0005)

    threads = [threading.Thread(target=go_round, args=(name,), name=f"busy-{name}") for name in rounds]
    for thread in threads:
        thread.start()
    try:
        assert until(lambda: all(rounds.values()), 120)  # what they import is there
        yield rounds
    finally:
        _stop.set()
        for thread in threads:
            thread.join()
        for handler in handlers:
            _log.removeHandler(handler)
            handler.close()
        handlers[1].stream.close()
        sys.path.remove(str(folder))


def alive(rank: int, folder: Path, *names: str) -> int:
    """Do in a rank what the threads of the launching process do; return the rank."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in names or LOADS:
            LOADS[name](folder)
    subprocess.run(["true"], check=True)
    thread = threading.Thread(target=print, args=("rank", rank))
    thread.start()
    thread.join()
    return rank
