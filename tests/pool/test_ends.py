"""How pools end: by request, with their last reference, with their process, in a forked child."""

from __future__ import annotations

import gc
import os
import pickle
import time
import weakref
from pathlib import Path

import pytest

from nbmp.executor import ProcessPoolExecutor
from nbmp.pool import Pool
from tests import scripts
from tests.forking import fork
from tests.pool import functions
from tests.waiting import content, none_runs, until


def pids(pool: Pool) -> list[int]:
    return pool._workers.pids()


def test_close_and_join_do_what_was_asked_for(method: str) -> None:
    pool = Pool(2, start_method=method)
    result = pool.map_async(functions.square, range(100), 1)
    workers = pids(pool)
    with pytest.raises(ValueError, match="still running"):
        pool.join()
    pool.close()
    with pytest.raises(ValueError, match="not running"):
        pool.apply(functions.square, (1,))
    pool.join()
    assert result.get(0) == [x * x for x in range(100)]
    assert none_runs(workers)
    pool.close()
    pool.terminate()
    pool.join()


def test_terminate_ends_stubborn_workers_in_bounded_time(pool: Pool, tmp_path: Path) -> None:
    path = tmp_path / "pid"
    other = str(tmp_path / "other")
    results = [
        pool.apply_async(functions.stay_whatever_is_asked, (str(path),)),
        pool.apply_async(functions.stay, (other,)),
    ]
    waiting = pool.map_async(functions.square, range(4))
    content(path)
    workers = pids(pool)
    begun = time.monotonic()
    pool.terminate()
    pool.join()
    assert time.monotonic() - begun < 5
    assert none_runs(workers)
    for result in (*results, waiting):
        with pytest.raises(RuntimeError, match="terminated"):
            result.get(0)


def test_leaving_the_block_terminates(method: str) -> None:
    with Pool(2, start_method=method) as pool:
        workers = pids(pool)
    assert none_runs(workers)
    with pytest.raises(ValueError, match="not running"):
        pool.__enter__()


def test_pool_that_is_let_go_ends(method: str) -> None:
    pool = Pool(2, start_method=method)
    pool.map(functions.square, range(4))
    workers, alive = pids(pool), weakref.ref(pool)
    del pool
    gc.collect()
    assert alive() is None
    assert until(lambda: none_runs(workers), 5)


def test_pool_stays_while_a_result_is_waited_for(method: str) -> None:
    assert Pool(2, start_method=method).map_async(functions.square, range(4)).get(10) == [0, 1, 4, 9]
    assert list(Pool(2, start_method=method).imap(functions.square, range(4))) == [0, 1, 4, 9]


def test_pools_cannot_be_pickled(pool: Pool) -> None:
    with pytest.raises(NotImplementedError, match="cannot be passed"):
        pickle.dumps(pool)


SCRIPT = """
    import os, sys
    from nbmp.pool import Pool

    def f(x):
        print("task", x, flush=True)
        return x + 1

    pool = Pool(2, start_method=sys.argv[1])
    sys.stdout.write(f"{pool.map(f, [1])}\\n")  # in one piece: the worker's line may come at the same time
    sys.stdout.flush()
    open("pids", "w").write(" ".join(map(str, pool._workers.pids())))
    if sys.argv[2] == "busy":
        import time
        pool.map_async(time.sleep, [60] * 8)
    if sys.argv[2] == "raise":
        raise SystemExit(3)
    if sys.argv[2] == "kill":
        os.kill(os.getpid(), 9)
"""


@pytest.mark.parametrize("way", ["idle", "busy", "raise", "kill"])
def test_exit_without_close_leaves_nothing_and_prints_nothing(method: str, way: str, tmp_path: Path) -> None:
    begun = time.monotonic()
    done = scripts.run(tmp_path, SCRIPT, method, way)
    assert time.monotonic() - begun < 15
    assert done.stderr == ""
    told = [line for line in done.stdout.splitlines() if line.endswith("] task 1")]
    assert len(told) == 1 or way == "kill"
    assert [line for line in done.stdout.splitlines() if line not in told] == ["[2]"]
    assert done.returncode == {"raise": 3, "kill": -9}.get(way, 0)
    assert scripts.gone_soon([int(pid) for pid in (tmp_path / "pids").read_text().split()])


def test_a_forked_childs_pool_is_inert(pool: Pool) -> None:
    result = pool.apply_async(functions.square, (3,))
    result.wait()
    read, write = os.pipe()
    child = fork()
    if child == 0:
        told = []
        for call in (
            lambda: pool.map(functions.square, [1]),
            lambda: pool.apply_async(functions.square, (1,)),
            lambda: pool.terminate(),
            lambda: pool.close(),
        ):
            try:
                call()
            except RuntimeError as error:
                told.append("belongs to process" in str(error))
        os.write(write, repr(told).encode())
        os._exit(0)
    os.close(write)
    os.waitpid(child, 0)
    assert os.read(read, 1000) == b"[True, True, True, True]"
    os.close(read)
    assert pool.map(functions.square, [1, 2]) == [1, 4]


def test_workers_of_a_pool_are_daemons_and_those_of_an_executor_are_not(method: str) -> None:
    """As in the standard library: only the latter may have children."""
    with Pool(1, start_method=method) as pool, pytest.raises(AssertionError, match="daemonic"):
        pool.apply(_pool_in_worker)
    with ProcessPoolExecutor(1, start_method=method) as executor:
        assert executor.submit(_pool_in_worker).result(20) == [1, 4]


def _pool_in_worker() -> list[int]:
    with Pool(1) as pool:
        return pool.map(functions.square, [1, 2])
