"""Threads of BLAS and OpenMP: cores / ranks, unless somebody has said otherwise."""

from __future__ import annotations

import os
import threading
from typing import Any

import numpy as np
import pytest
import threadpoolctl

import nbmp
from nbmp.launching import libraries
from nbmp.launching.threads import THREAD_VARIABLES
from tests.waiting import until


def blas_threads(rank: int) -> set[int]:
    np.ones((64, 64)) @ np.ones((64, 64))
    return {pool["num_threads"] for pool in threadpoolctl.threadpool_info() if pool["user_api"] == "blas"}


def told(rank: int) -> dict[str, str]:
    return {name: os.environ[name] for name in THREAD_VARIABLES if name in os.environ}


@pytest.fixture
def cores(monkeypatch: pytest.MonkeyPatch) -> int:
    """A machine of eight cores on which nobody has set a number of threads."""
    for name in THREAD_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("nbmp.platforms.cpu_count", lambda: 8)
    return 8


@pytest.mark.parametrize("nprocs", [1, 3])
def test_each_rank_gets_its_share_of_the_cores(method: str, cores: int, nprocs: int) -> None:
    share = cores // nprocs
    blas_threads(0)  # loaded here, as in a notebook
    expected = min(share, limit()) if method == "spawn" else share
    assert nbmp.launch(blas_threads, (), nprocs, start_method=method) == [{expected}] * nprocs
    assert nbmp.launch(told, (), nprocs, start_method=method) == [dict.fromkeys(THREAD_VARIABLES, str(share))] * nprocs


def limit() -> int:
    """OpenBLAS starts with at most as many threads as there are cores."""
    return len(os.sched_getaffinity(0))


def test_more_ranks_than_cores_get_one_thread_each(method: str, cores: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nbmp.platforms.cpu_count", lambda: 1)
    assert nbmp.launch(blas_threads, (), 3, start_method=method) == [{1}] * 3


def test_variable_that_is_set_is_left_alone(method: str, cores: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "5")
    (result,) = nbmp.launch(told, start_method=method)
    assert result["OMP_NUM_THREADS"] == "5"
    assert os.environ["OMP_NUM_THREADS"] == "5"


def test_libraries_are_left_alone_when_a_variable_is_set(
    method: str, cores: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nbmp.platforms.cpu_count", lambda: 1)
    for name in THREAD_VARIABLES:
        monkeypatch.setenv(name, "2")
    with threadpoolctl.threadpool_limits(2):
        (result,) = nbmp.launch(blas_threads, start_method=method)
    assert result == {min(2, limit())}


def test_one_variable_that_is_set_is_obeyed(method: str, cores: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    with threadpoolctl.threadpool_limits(2):  # as it would be, had this process started with it
        assert nbmp.launch(blas_threads, (), 1, start_method=method) == [{min(2, limit())}]


def test_threads_argument_overrides_all(method: str, cores: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "5")
    blas_threads(0)
    arguments: dict[str, Any] = {"start_method": method, "threads": 1}
    assert nbmp.launch(blas_threads, (), 2, **arguments) == [{1}, {1}]
    assert nbmp.launch(told, **arguments) == [dict.fromkeys(THREAD_VARIABLES, "1")]


def test_threads_of_the_launching_process_are_as_before(method: str, cores: int) -> None:
    before = blas_threads(0)
    nbmp.launch(blas_threads, (), 4, start_method=method)
    assert blas_threads(0) == before


def tasks_of_libraries(rank: int = 0) -> set[int]:
    """Return the threads of this process that are none of Python's."""
    return set(map(int, os.listdir("/proc/self/task"))) - {thread.native_id or 0 for thread in threading.enumerate()}


def test_number_that_libraries_have_is_not_set_again(cores: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """That would start the threads which OpenBLAS has ended before the fork, where it hides its variable."""
    monkeypatch.setattr(libraries, "_write", lambda *_: False)
    with threadpoolctl.threadpool_limits(1):
        before = tasks_of_libraries()  # pytest has one as well
        assert nbmp.launch(tasks_of_libraries, (), 1, start_method="fork", threads=1) == [set()]
        assert until(lambda: tasks_of_libraries() < before)
