"""Executors of other libraries in ranks: their workers are told to end, and a rank has its own."""

from __future__ import annotations

import concurrent.futures
import importlib.util
import multiprocessing
import threading
from concurrent.futures import Executor
from pathlib import Path

import pytest

import nbmp
from tests import scripts

SECONDS = 60.0
"""Far more than it takes; without a bound a test that fails would hang."""

kept: list[Executor] = []


def use(rank: int, kind: str) -> int:
    executor: Executor = getattr(concurrent.futures, kind)(1)
    kept.append(executor)  # so it does not end by itself
    return executor.submit(abs, -3).result()


@pytest.mark.parametrize("kind", ["ProcessPoolExecutor", "ThreadPoolExecutor"])
def test_a_rank_ends_that_has_not_shut_its_executor_down(method: str, kind: str) -> None:
    assert nbmp.launch(use, (kind,), start_method=method, timeout=SECONDS) == [3]


def test_executors_of_the_launching_process_go_on_when_ranks_have_ended(method: str) -> None:
    with concurrent.futures.ProcessPoolExecutor(1) as executor:
        assert executor.submit(abs, -1).result() == 1
        assert nbmp.launch(use, ("ProcessPoolExecutor",), 2, start_method=method, timeout=SECONDS) == [3, 3]
        assert executor.submit(abs, -2).result(SECONDS) == 2


@pytest.mark.skipif(importlib.util.find_spec("joblib") is None, reason="joblib is not installed")
def test_joblib_runs_in_a_forked_rank_though_the_launching_process_has_used_it(tmp_path: Path) -> None:
    source = f"""
        from joblib import Parallel, delayed
        import nbmp

        def work(rank):
            return Parallel(n_jobs=2)(delayed(pow)(base, 2) for base in range(4))

        work(0)
        print(nbmp.launch(work, nprocs=2, start_method="fork", timeout={SECONDS}))
        print(work(0))
    """
    assert scripts.output(tmp_path, source) == "[[0, 1, 4, 9], [0, 1, 4, 9]]\n[0, 1, 4, 9]\n"


def use_a_fork_server(rank: int) -> int:
    with concurrent.futures.ProcessPoolExecutor(1, multiprocessing.get_context("forkserver")) as executor:
        return executor.submit(abs, -3).result()


def test_a_forked_rank_has_a_fork_server_of_multiprocessings_of_its_own() -> None:
    assert use_a_fork_server(0) == 3
    assert nbmp.launch(use_a_fork_server, (), 2, start_method="fork", timeout=SECONDS) == [3, 3]
    assert use_a_fork_server(0) == 3


def fail_at_the_end(rank: int) -> int:
    threading._register_atexit(int, "no number")  # type: ignore[attr-defined]  # as executors do
    return rank


def test_what_fails_at_the_end_is_printed_and_the_rank_has_returned(
    method: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert nbmp.launch(fail_at_the_end, (), 2, start_method=method) == [0, 1]
    assert "invalid literal for int() with base 10: 'no number'" in capfd.readouterr().err
