"""Threads of BLAS and OpenMP: cores / ranks, unless somebody has said otherwise."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest
import threadpoolctl

import nbmp
from nbmp.launching.threads import THREAD_VARIABLES


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
