"""Ctrl-C, or the notebook's stop button, while results are waited for. Real scripts, real signals."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import nbmp
from nbmp import executor as nbmp_executor
from nbmp import pool as nbmp_pool
from nbmp import process as nbmp_process
from tests import scripts
from tests.waiting import none_runs, until


def pids_of_running(folder: Path) -> list[int]:
    """Return the pids of the two tasks that run, whichever they are."""
    assert until(lambda: len(list(folder.glob("pid?"))) == 2)
    return [int(path.read_text()) for path in folder.glob("pid?")]


SCRIPT = """
    import sys, time
    from nbmp.pool import Pool
    from tests.pool import functions

    method, call = sys.argv[1:]
    paths = ["pid0", "pid1", "pid2", "pid3"]
    with Pool(2, start_method=method) as pool:
        kept = pool.apply_async(functions.square, (1,))
        try:
            if call == "map":
                pool.map(functions.stay_whatever_is_asked, paths, 1)
            if call == "get":
                pool.map_async(functions.stay_whatever_is_asked, paths, 1).get()
            if call == "next":
                list(pool.imap(functions.stay_whatever_is_asked, paths))
            if call == "apply":
                pool.apply_async(functions.stay_whatever_is_asked, ("pid1",))
                pool.apply(functions.stay_whatever_is_asked, ("pid0",))
        except KeyboardInterrupt:
            print("interrupted", flush=True)
        begun = time.monotonic()
        print(pool.apply_async(abs, (-1,)).get(timeout=5), pool.map(functions.square, range(3)), kept.get())
        print(pool._workers.started, flush=True)
"""


@pytest.mark.parametrize("call", ["map", "get", "next", "apply"])
def test_the_call_ends_its_workers_end_and_the_pool_goes_on(method: str, call: str, tmp_path: Path) -> None:
    with scripts.started(tmp_path, SCRIPT, method, call) as script:
        pids = pids_of_running(tmp_path)
        begun = time.monotonic()
        os.killpg(script.pid, signal.SIGINT)
        out, err = script.communicate(timeout=20)
        assert time.monotonic() - begun < 10
    assert none_runs(pids)
    assert err == ""
    assert out.splitlines() == ["interrupted", "1 [0, 1, 4] 1", "3" if call == "apply" else "4"]


EXECUTOR = """
    import sys
    from nbmp.executor import ProcessPoolExecutor
    from tests.pool import functions

    with ProcessPoolExecutor(2, start_method=sys.argv[1]) as executor:
        list(executor.map(functions.stay_whatever_is_asked, ["pid0", "pid1", "pid2"]))
"""


def test_interrupted_executor_ends_with_one_traceback(method: str, tmp_path: Path) -> None:
    with scripts.started(tmp_path, EXECUTOR, method) as script:
        pids = pids_of_running(tmp_path)
        begun = time.monotonic()
        script.send_signal(signal.SIGINT)
        out, err = script.communicate(timeout=20)
        assert time.monotonic() - begun < 10
    assert none_runs(pids)
    assert out == ""
    assert err.count("Traceback") == 1
    assert err.rstrip().endswith("KeyboardInterrupt")


MANY = """
    import sys, threading, time, signal, os
    from nbmp.pool import Pool

    with Pool(2, start_method=sys.argv[1]) as pool:
        stop = threading.Event()
        def press():
            while not stop.wait(0.02):
                os.kill(os.getpid(), signal.SIGINT)
        presser = threading.Thread(target=press)
        interrupted = done = 0
        presser.start()
        end = time.monotonic() + 4
        while time.monotonic() < end:
            try:
                pool.map(abs, range(100), 1)
                done += 1
            except KeyboardInterrupt:
                interrupted += 1
        while presser.is_alive():
            try:
                stop.set()
                presser.join()
            except KeyboardInterrupt:
                pass
        print(interrupted > 10, pool.apply_async(abs, (-1,)).get(timeout=10))
"""


def test_pool_goes_on_after_many_interrupts_at_any_moment(method: str, tmp_path: Path) -> None:
    assert scripts.output(tmp_path, MANY, method) == "True 1\n"


def start_a_process() -> None:
    nbmp.Process(target=abs, args=(-1,), name="Single").start()


def use_a_pool() -> None:
    with nbmp.Pool(2) as pool:
        pool.apply(abs, (-1,))


def use_an_executor() -> None:
    with nbmp.ProcessPoolExecutor(2) as executor:
        executor.submit(abs, -1)


POOL = "the pool was being started: the pool and its 2 workers have ended"
CALL = "the executor was starting its workers: the call was not taken; they wait for calls, or for `shutdown`"


@pytest.mark.parametrize(
    ("module", "maker", "use", "told"),
    [
        (nbmp_pool, "make_workers", use_a_pool, POOL),
        (nbmp_executor, "make_workers", use_an_executor, CALL),
        (nbmp_process, "begin", start_a_process, "Single was being started, and was stopped"),
    ],
)
def test_interrupt_while_processes_are_started_leaves_none_and_says_so(
    module: ModuleType, maker: str, use: Callable[[], None], told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = []
    make = getattr(module, maker)

    def pressed(*given: Any, **named: Any) -> Any:
        made.append(make(*given, **named))
        os.kill(os.getpid(), signal.SIGINT)
        return made[0]

    monkeypatch.setattr(module, maker, pressed)
    with pytest.raises(KeyboardInterrupt) as interrupt:
        use()
    assert str(interrupt.value) == told
    assert until(made[0].finished.is_set)
