"""Tasks that fail: what is told, and that the same workers go on."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import traceback
from pathlib import Path
from typing import Any

import pytest

import nbmp
from nbmp.errors import BrokenPoolError, WorkerExitedError
from nbmp.pool import Pool
from tests.pool import functions
from tests.pool.functions import OneWay, Trap
from tests.waiting import content


def works(pool: Pool, started: int = 2) -> None:
    """Assert that the pool does its work, with no worker replaced beyond those."""
    assert pool.map_async(functions.square, range(4), 1).get(10) == [0, 1, 4, 9]
    assert pool._workers.started == started


def test_an_exception_is_the_original_with_the_workers_traceback(pool: Pool) -> None:
    with pytest.raises(ValueError, match="no 2") as caught:
        pool.map(functions.fail_at_two, range(4))
    text = "".join(traceback.format_exception(caught.value))
    assert "fail_at_two" in text
    assert "nbmp/pools/serving.py" not in text
    works(pool)


def test_map_does_all_the_others_before_it_raises(pool: Pool, tmp_path: Path) -> None:
    paths = [str(tmp_path / str(number)) for number in range(8)]
    with pytest.raises((IsADirectoryError, TypeError, ValueError)):
        pool.map(functions.make, [*paths, "\0"], chunksize=1)
    assert len(list(tmp_path.iterdir())) == 8


def test_imap_raises_in_turn_and_goes_on(pool: Pool) -> None:
    results = pool.imap(functions.fail_at_two, range(4))
    assert [next(results), next(results)] == [0, 1]
    with pytest.raises(ValueError, match="no 2"):
        next(results)
    assert next(results) == 3
    with pytest.raises(StopIteration):
        next(results)


@pytest.mark.parametrize(
    ("x", "name", "text"),
    [
        (1, "SimError", "diverged at step 1"),
        (2, "Locky", "has a lock"),
        (3, "Local", "local class"),
    ],
)
def test_odd_exceptions_are_told(pool: Pool, x: int, name: str, text: str) -> None:
    with pytest.raises(Exception) as caught:
        pool.apply_async(functions.boom, (x,)).get(timeout=10)
    assert text in str(caught.value)
    assert name in repr(caught.value)
    if x == 2:
        assert isinstance(caught.value, nbmp.ProcessRaisedException)
        assert "in boom" in str(caught.value)
        assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)
    works(pool)


def test_task_that_cannot_be_pickled(pool: Pool) -> None:
    calls: list[Any] = [
        lambda: pool.apply(functions.square, (OneWay(),)),
        lambda: pool.apply_async(functions.square, (OneWay(),)).get(10),
        lambda: pool.map(functions.square, [1, OneWay()]),
        lambda: pool.map_async(functions.square, [1, OneWay()]).get(10),
        lambda: list(pool.imap(functions.square, [1, OneWay()])),
        lambda: list(pool.imap_unordered(functions.square, [1, OneWay()])),
        lambda: pool.map(OneWay().__init__, [1]),  # type: ignore[misc]
        lambda: list(pool.imap(OneWay().__init__, [1])),  # type: ignore[misc]
    ]
    for call in calls:
        with pytest.raises(nbmp.CannotTravelError):
            call()
    errors: list[BaseException] = []
    pool.apply_async(functions.square, (OneWay(),), error_callback=errors.append).wait()
    works(pool)
    assert [type(error) for error in errors] == [nbmp.CannotTravelError]


def test_task_that_cannot_be_unpickled(pool: Pool) -> None:
    for call in (
        lambda: pool.map_async(functions.square, [Trap()]).get(timeout=10),
        lambda: pool.apply_async(functions.square, (Trap(),)).get(timeout=10),
        lambda: pool.map(functions.Called(), [1, 2], chunksize=1),
    ):
        with pytest.raises(nbmp.ProcessRaisedException, match="while unpickling its task") as caught:
            call()
        assert "not a number" in str(caught.value)
    works(pool)


def test_result_that_cannot_travel(pool: Pool) -> None:
    with pytest.raises(nbmp.ProcessRaisedException, match="while pickling its result") as caught:
        pool.apply(functions.give_lambda_of_lock, (1,))
    assert "this one stays" in str(caught.value)
    with pytest.raises(ValueError, match="not a number"):
        pool.map(functions.give_trap, [1])
    works(pool)


@pytest.mark.parametrize(
    ("how", "code", "text"),
    [
        ("exit", 3, "left with exit code 3"),
        ("leave", 0, "left with exit code 0"),
        ("SIGKILL", -9, "memory"),
        ("SIGSEGV", -11, "SIGSEGV"),
        ("sys.exit", 4, "left with exit code 4"),
        ("sys.exit()", 0, "left with exit code 0"),
    ],
)
def test_worker_that_dies_fails_its_task_and_is_replaced_once(pool: Pool, how: str, code: int, text: str) -> None:
    with pytest.raises(WorkerExitedError, match=text) as caught:
        pool.map_async(functions.die, [how, "ok"], chunksize=1).get(timeout=5)
    error = caught.value
    assert error.exit_code == code
    assert isinstance(error, nbmp.ProcessExitedException)
    assert vars(pickle.loads(pickle.dumps(error))) == vars(error)
    works(pool, started=3)


def test_worker_whose_descriptor_something_else_writes_to_is_replaced(
    pool: Pool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Which outcome it was, if any, cannot be known: later ones would be taken for those of other tasks."""
    lost = pool.apply_async(functions.stay, (str(tmp_path / "pid"),))
    pid = int(content(tmp_path / "pid"))
    (worker,) = [worker for worker in pool._workers._workers if worker.record.pid == pid]
    os.write(worker._unread.fd, b"Traceback (most recent call last):\n")  # the worker's end of its channel
    with pytest.raises(WorkerExitedError, match=f"worker {worker.slot} of the pool"):
        lost.get(60)
    assert f"worker {worker.slot} (pid {pid}) is stopped: something else than outcomes was written" in caplog.text
    works(pool, started=3)


def test_interrupt_raised_by_a_task_is_its_failure(pool: Pool) -> None:
    with pytest.raises(nbmp.ProcessRaisedException, match="KeyboardInterrupt"):
        pool.apply(functions.die, ("interrupt",))
    works(pool)


def test_only_the_running_task_of_a_worker_that_dies_is_lost(pool: Pool) -> None:
    results = [pool.apply_async(functions.die, ("SIGKILL" if number % 10 == 0 else "ok",)) for number in range(50)]
    lost = 0
    for number, result in enumerate(results):
        try:
            assert result.get(20) == "ok"
        except WorkerExitedError:
            lost += 1
            assert number % 10 == 0
    assert lost == 5
    works(pool, started=7)


def test_imap_tells_of_a_dead_worker_in_turn(pool: Pool) -> None:
    results = pool.imap(functions.die, ["a", "exit", "b"])
    assert next(results) == "a"
    with pytest.raises(WorkerExitedError):
        next(results)
    assert next(results) == "b"


def test_initializer_runs_in_each_worker_and_its_successors(method: str) -> None:
    with Pool(2, functions.set_up, ("key", "value"), start_method=method) as pool:
        assert pool.map(functions.look_up, ["key"] * 8, 1) == ["value"] * 8
        for _ in range(2):
            with pytest.raises(WorkerExitedError):
                pool.apply(functions.die, ("exit",))
        assert pool.map(functions.look_up, ["key"] * 8, 1) == ["value"] * 8
        assert pool._workers.started == 4


def test_initializer_that_raises_breaks_the_pool_once(method: str, tmp_path: Path) -> None:
    calls = tmp_path / "calls"
    with Pool(2, functions.fail_to_set_up, (str(calls),), start_method=method) as pool:
        pending = pool.map_async(functions.square, range(4)) if method == "spawn" else None
        with pytest.raises(BrokenPoolError, match="no model here") as caught:
            for _ in range(1000):
                pool.apply_async(functions.square, (1,)).get(timeout=10)
        assert isinstance(caught.value.__cause__, RuntimeError)
        if pending is not None:
            with pytest.raises(BrokenPoolError, match="no model here"):
                pending.get(timeout=10)
        with pytest.raises(BrokenPoolError, match="no model here"):
            pool.map(functions.square, [1])
        assert pool._workers.started == 2
    assert len(calls.read_text()) <= 2


def test_initializer_that_ends_its_worker_breaks_the_pool(method: str) -> None:
    with Pool(2, functions.die, ("exit",), start_method=method) as pool:
        with pytest.raises(BrokenPoolError, match="exit code 3"):
            pool.apply_async(functions.square, (1,)).get(timeout=10)
        assert pool._workers.started <= 4


def test_initializer_that_cannot_travel(method: str) -> None:
    if method == "fork":
        with Pool(1, functions.set_up, ("lock", OneWay()), start_method=method) as pool:
            assert pool.apply(functions.square, (2,)) == 4
    else:
        with pytest.raises(nbmp.CannotTravelError, match=r"initargs\[1\]"):
            Pool(1, functions.set_up, ("lock", OneWay()), start_method=method)


def test_workers_are_renewed_after_maxtasksperchild(method: str) -> None:
    with Pool(2, maxtasksperchild=3, start_method=method) as pool:
        seen = pool.map(functions.count_up, range(12), chunksize=1)
        assert max(calls for _, calls in seen) <= 3
        assert len({pid for pid, _ in seen}) >= 4
        with pytest.raises(multiprocessing.TimeoutError):
            pool.apply_async(functions.wait_for, ("never",)).get(0.01)
