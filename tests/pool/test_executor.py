"""`ProcessPoolExecutor`: the interface of `concurrent.futures`."""

from __future__ import annotations

import concurrent.futures as cf
import multiprocessing
import os
import time
from collections.abc import Iterator
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

import numpy as np
import pytest

import nbmp
from nbmp.errors import BrokenPoolError, WorkerExitedError
from nbmp.executor import ProcessPoolExecutor
from tests import scripts
from tests.forking import fork
from tests.pool import functions
from tests.pool.functions import OneWay, Trap
from tests.waiting import until


@pytest.fixture
def executor(method: str) -> Iterator[ProcessPoolExecutor]:
    with ProcessPoolExecutor(2, start_method=method) as executor:
        yield executor


@pytest.mark.usefixtures("strategy")
def test_submit_and_map(executor: ProcessPoolExecutor) -> None:
    assert executor.submit(functions.add, 1, b=2).result(10) == 3
    assert list(executor.map(functions.add, [1, 2, 3], [4, 5, 6])) == [5, 7, 9]
    assert list(executor.map(functions.square, range(20), chunksize=3)) == [x * x for x in range(20)]
    assert list(executor.map(lambda x: x + 1, range(3), timeout=10)) == [1, 2, 3]
    futures = [executor.submit(functions.square, x) for x in range(20)]
    assert sorted(future.result() for future in cf.as_completed(futures, 10)) == [x * x for x in range(20)]
    with pytest.raises(ValueError, match="chunksize"):
        executor.map(functions.square, [1], chunksize=0)
    array = np.ones(100_000)
    assert executor.submit(functions.doubled, array).result(10).sum() == 200_000


def test_failures_are_of_their_own_future(executor: ProcessPoolExecutor) -> None:
    assert isinstance(executor.submit(functions.fail_at, 1, 1).exception(10), ValueError)
    assert isinstance(executor.submit(functions.square, OneWay()).exception(10), nbmp.CannotTravelError)
    assert isinstance(executor.submit(functions.square, Trap()).exception(10), nbmp.ProcessRaisedException)
    futures = [executor.submit(functions.die, "SIGKILL" if number == 3 else "ok") for number in range(10)]
    assert isinstance(futures[3].exception(10), WorkerExitedError)
    assert [future.result(10) for number, future in enumerate(futures) if number != 3] == ["ok"] * 9


def test_map_with_timeout(executor: ProcessPoolExecutor, tmp_path: Path) -> None:
    go = str(tmp_path / "go")
    with pytest.raises(cf.TimeoutError):
        list(executor.map(functions.wait_for, [go], timeout=0.05))
    functions.make(go)


def test_cancel_what_is_not_given_out(executor: ProcessPoolExecutor, tmp_path: Path) -> None:
    go = str(tmp_path / "go")
    executor.submit(time.sleep, 0.01).result()  # a worker whose tasks are quick is given more of them ahead
    futures = [executor.submit(functions.wait_for, go) for _ in range(10)]
    cancelled = [future.cancel() for future in futures]
    assert sum(cancelled) >= 6
    functions.make(go)
    for future, was_cancelled in zip(futures, cancelled, strict=True):
        if was_cancelled:
            with pytest.raises(cf.CancelledError):
                future.result(10)
        else:
            assert future.result(10) == go
    assert cf.wait(futures, 10).not_done == set()


def test_shutdown(method: str, tmp_path: Path) -> None:
    executor = ProcessPoolExecutor(2, start_method=method)
    go = str(tmp_path / "go")
    futures = [executor.submit(functions.wait_for, go) for _ in range(10)]
    executor.shutdown(wait=False, cancel_futures=True)
    with pytest.raises(RuntimeError, match="after shutdown"):
        executor.submit(functions.square, 1)
    functions.make(go)
    executor.shutdown()
    assert all(future.done() for future in futures)
    assert sum(future.cancelled() for future in futures) >= 6
    ProcessPoolExecutor(2).shutdown()


def test_calls_that_were_given_ahead_since_others_were_quick_can_be_cancelled(tmp_path: Path) -> None:
    go = str(tmp_path / "go")
    with ProcessPoolExecutor(1) as executor:
        list(executor.map(abs, range(300)))  # from now on many are given ahead
        futures = [executor.submit(functions.wait_for, go) for _ in range(20)]
        assert until(lambda: sum(future.running() for future in futures) == 2)
        assert futures[-1].cancel()
        executor.shutdown(wait=False, cancel_futures=True)
        assert until(lambda: futures[1].cancelled())  # the one ahead
        functions.make(go)
    assert sum(future.cancelled() for future in futures) == 19


def test_done_callback_may_submit(executor: ProcessPoolExecutor) -> None:
    second: cf.Future[cf.Future[int]] = cf.Future()
    executor.submit(functions.square, 3).add_done_callback(
        lambda first: second.set_result(executor.submit(functions.square, first.result()))
    )
    assert second.result(10).result(10) == 81


def test_initializer_that_raises(method: str, tmp_path: Path) -> None:
    initargs = (str(tmp_path / "calls"),)
    with ProcessPoolExecutor(2, None, functions.fail_to_set_up, initargs, start_method=method) as executor:
        with pytest.raises(BrokenProcessPool, match="no model here"):
            executor.submit(functions.square, 1).result(10)
        with pytest.raises(BrokenPoolError, match="no model here"):
            executor.submit(functions.square, 1)


def test_workers_are_renewed_and_initialized(method: str) -> None:
    context = multiprocessing.get_context(method)
    with ProcessPoolExecutor(2, context, functions.set_up, ("key", 5), max_tasks_per_child=2) as executor:
        assert list(executor.map(functions.look_up, ["key"] * 9)) == [5] * 9
        assert len(set(executor.map(functions.pid, range(8)))) >= 4


def test_forked_child_is_told(executor: ProcessPoolExecutor) -> None:
    executor.submit(functions.square, 1).result()
    child = fork()
    if child == 0:
        try:
            executor.submit(functions.square, 1)
        except RuntimeError as error:
            os._exit(0 if "belongs to process" in str(error) else 2)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


SCRIPT = """
    import sys, time
    from nbmp.executor import ProcessPoolExecutor

    def slow(x):
        time.sleep(0.5)
        print("done", x)

    executor = ProcessPoolExecutor(2, start_method=sys.argv[1])
    futures = [executor.submit(slow, x) for x in range(3)]
    del executor, futures
"""


def test_exit_waits_for_what_was_submitted(method: str, tmp_path: Path) -> None:
    out = scripts.output(tmp_path, SCRIPT, method)
    assert sorted(line[4:] for line in out.splitlines()) == ["done 0", "done 1", "done 2"]
