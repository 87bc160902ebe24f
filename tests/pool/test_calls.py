"""The calls of a pool: the standard library's names and meanings."""

from __future__ import annotations

import itertools
import multiprocessing
import os
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import nbmp
from nbmp.pool import Pool
from tests.pool import functions
from tests.waiting import until


def test_every_kind_of_call(pool: Pool) -> None:
    assert pool.apply(functions.add, (1,), {"b": 2}) == 3
    assert pool.apply_async(functions.add, (1, 2)).get() == 3
    assert pool.map(functions.square, range(10)) == [x * x for x in range(10)]
    assert pool.map(functions.square, (x for x in range(10)), chunksize=3) == [x * x for x in range(10)]
    assert pool.map(functions.square, []) == []
    assert pool.map_async(functions.square, range(100), chunksize=1).get() == [x * x for x in range(100)]
    assert pool.starmap(functions.add, [(1, 2), (3, 4)]) == [3, 7]
    assert pool.starmap_async(functions.add, [(1, 2), (3, 4)], 1).get() == [3, 7]
    assert list(pool.imap(functions.square, range(50))) == [x * x for x in range(50)]
    assert list(pool.imap(functions.square, range(50), 7)) == [x * x for x in range(50)]
    assert sorted(pool.imap_unordered(functions.square, range(50), 3)) == [x * x for x in range(50)]


def test_work_is_done_in_the_workers(pool: Pool) -> None:
    pids = set(pool.map(functions.pid, range(100), chunksize=1))
    assert os.getpid() not in pids
    assert len(pids) <= 2


def test_lambdas_and_local_functions(pool: Pool) -> None:
    base = 10
    assert pool.map(lambda x: x + base, range(4)) == [10, 11, 12, 13]


def test_state_of_a_result(pool: Pool, tmp_path: Path) -> None:
    go = str(tmp_path / "go")
    result = pool.apply_async(functions.wait_for, (go,))
    assert not result.ready()
    with pytest.raises(ValueError, match="not ready"):
        result.successful()
    result.wait(0.01)
    with pytest.raises(multiprocessing.TimeoutError):
        result.get(timeout=0.01)
    functions.make(go)
    assert result.get(timeout=10) == go
    assert result.ready()
    assert result.successful()
    failed = pool.apply_async(functions.fail_at, (1, 1))
    failed.wait()
    assert not failed.successful()


def test_callbacks(pool: Pool) -> None:
    values: list[object] = []
    pool.apply_async(functions.add, (1, 2), callback=values.append).get()
    pool.map_async(functions.square, [1, 2], callback=values.append).get()
    failed = pool.apply_async(functions.fail_at, (1, 1), error_callback=values.append)
    failed.wait()
    assert until(lambda: len(values) == 3)
    assert values[:2] == [3, [1, 4]]
    assert repr(values[2]) == "ValueError('no 1')"


@pytest.mark.filterwarnings("ignore")
def test_callback_that_raises_is_printed_and_the_pool_goes_on(pool: Pool, capsys: pytest.CaptureFixture[str]) -> None:
    pool.apply_async(functions.add, (1, 2), callback=lambda _: 1 / 0).get()
    assert pool.apply(functions.add, (1, 2)) == 3
    assert "ZeroDivisionError" in capsys.readouterr().err


def test_callback_that_would_wait_for_itself_is_told(pool: Pool) -> None:
    told: list[BaseException] = []

    def callback(_: object) -> None:
        try:
            pool.apply(functions.add, (1, 2))
        except RuntimeError as error:
            told.append(error)

    pool.apply_async(functions.add, (1, 2), callback=callback).get()
    assert until(lambda: told)
    assert "wait for itself" in str(told[0])


def test_imap_takes_from_an_endless_iterable_as_needed(pool: Pool) -> None:
    results = pool.imap(functions.square, itertools.count())
    assert [next(results) for _ in range(100)] == [x * x for x in range(100)]
    results.stop("the test")
    assert pool.apply(functions.add, (1, 2)) == 3


def test_next_with_timeout(pool: Pool, tmp_path: Path) -> None:
    go = str(tmp_path / "go")
    results = pool.imap(functions.wait_for, [go])
    with pytest.raises(multiprocessing.TimeoutError):
        results.next(timeout=0.05)
    functions.make(go)
    assert results.next(timeout=10) == go
    with pytest.raises(StopIteration):
        results.next()


def test_imap_is_done_after_close_although_nobody_reads(method: str, tmp_path: Path) -> None:
    pool = Pool(2, start_method=method)
    paths = [str(tmp_path / str(number)) for number in range(40)]
    pool.imap(functions.make, paths)
    pool.close()
    pool.join()
    assert len(list(tmp_path.iterdir())) == 40


@pytest.mark.usefixtures("strategy")
def test_arrays_travel_and_shared_ones_stay_shared(pool: Pool) -> None:
    arrays = [np.full(100_000, float(number)) for number in range(8)]
    for number, array in enumerate(pool.map(functions.doubled, arrays)):
        assert array.shape == (100_000,)
        assert (array == 2 * number).all()
    shared = nbmp.zeros(1000)
    pool.apply(functions.write_into, (shared, 7.0))
    assert (shared == 7).all()


def test_arguments_are_taken_as_they_are_at_the_call(pool: Pool, tmp_path: Path) -> None:
    blocked = [pool.apply_async(functions.wait_for, (str(tmp_path / "go"),)) for _ in range(2)]
    items = [[1], [2]]
    later = pool.map_async(functions.square, np.array([1.0, 2.0]))
    sums = pool.map_async(sum, items)
    items[0].append(100)
    functions.make(str(tmp_path / "go"))
    assert sums.get(10) == [1, 2]
    assert later.get(10) == [1, 4]
    assert [result.get(10) for result in blocked]


def test_task_that_waits_for_a_later_one_is_not_in_its_way(pool: Pool, tmp_path: Path) -> None:
    """The later one was given ahead, behind the one that waits for it."""
    a, b, c = (str(tmp_path / name) for name in "abc")
    chain = [(c, a), (a, b), ("", c)]
    assert pool.map_async(functions.stay_or_make, [chain[0], ("", b), chain[2]], 1).get(10) == [a, b, c]


def test_short_tasks_overtake_a_long_one(pool: Pool, tmp_path: Path) -> None:
    go = str(tmp_path / "go")
    long = pool.apply_async(functions.wait_for, (go,))
    short = [pool.apply_async(functions.add, (number, 1)) for number in range(200)]
    assert [result.get(10) for result in short] == list(range(1, 201))
    functions.make(go)
    long.get(10)


def test_calls_from_many_threads(pool: Pool) -> None:
    results: list[int] = []

    def call(number: int) -> None:
        results.extend(pool.map(functions.square, range(number, number + 20), chunksize=3))

    threads = [threading.Thread(target=call, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results) == sorted(x * x for number in range(8) for x in range(number, number + 20))


def test_random_numbers_differ_between_workers_and_from_their_successors(method: str) -> None:
    np.random.seed(1)
    with Pool(2, maxtasksperchild=1, start_method=method) as pool:
        drawn = pool.map(_draw, range(6), chunksize=1)
    assert len(set(drawn)) == 6


def _draw(_: int) -> float:
    time.sleep(0.02)
    return float(np.random.rand())


def test_wrong_arguments() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        Pool(0)
    with pytest.raises(TypeError, match="processes must be a whole number, not str"):
        Pool("2")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="initializer"):
        Pool(1, initializer=3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="maxtasksperchild"):
        Pool(1, maxtasksperchild=0)
    with pytest.raises(ValueError, match="start method"):
        Pool(1, start_method="thread")


def test_context_gives_the_start_method() -> None:
    with Pool(1, context=multiprocessing.get_context("spawn")) as pool:
        assert pool.apply(functions.add, (1, 2)) == 3
        assert pool._workers._workers[0].context.start_method == "spawn"


def test_calls_are_told_apart_however_many_there_were_in_between(monkeypatch: pytest.MonkeyPatch) -> None:
    """A function's number is cut to a byte where it travels as a kind."""
    monkeypatch.setattr("nbmp.pools.tasks._numbers", iter([255, 511, 2, 258]))
    with Pool(1) as pool:
        assert pool.map(abs, [-3]) == [3]
        assert pool.map(functions.square, [-3]) == [9]
        with pytest.raises(nbmp.ProcessRaisedException, match="not a number"):
            pool.map(functions.Called(), [-3])
        assert pool.map(abs, [-3]) == [3]
