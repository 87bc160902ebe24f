"""What a launch gives back."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

import nbmp
from tests.launching import functions


def number_and_more(rank: int, base: int, word: str) -> tuple[int, str]:
    return base + rank, word * rank


def rank_alone(rank: int) -> int:
    return rank


def leave_a_file(rank: int, folder: Path) -> str:
    (folder / str(rank)).touch()
    return "dropped by start_processes"


def test_launch_returns_what_each_rank_returned_in_rank_order(method: str) -> None:
    assert nbmp.launch(number_and_more, (10, "ab"), 3, start_method=method) == [
        (10, ""),
        (11, "ab"),
        (12, "abab"),
    ]


def test_start_processes_with_join_returns_none_after_all_ranks_ran(method: str, tmp_path: Path) -> None:
    assert nbmp.start_processes(leave_a_file, (tmp_path,), 3, start_method=method) is None
    assert {path.name for path in tmp_path.iterdir()} == {"0", "1", "2"}


def test_start_processes_without_join_returns_a_context_with_the_results(method: str) -> None:
    context = nbmp.start_processes(rank_alone, (), 2, join=False, start_method=method)
    assert context is not None
    assert context.join()
    assert context.results == [0, 1]


def test_spawn_joins_and_returns_none(tmp_path: Path) -> None:
    assert nbmp.spawn(leave_a_file, (tmp_path,)) is None
    assert {path.name for path in tmp_path.iterdir()} == {"0"}


def test_spawn_without_join_returns_a_context() -> None:
    context = nbmp.spawn(rank_alone, nprocs=2, join=False)
    assert context is not None
    assert context.start_method == "spawn"
    assert context.join()


def test_results_of_ranks_that_have_not_returned_are_none(method: str, tmp_path: Path) -> None:
    context = functions.begin(functions.first_ends_second_waits, (str(tmp_path),), 2, method)
    while not context.ranks[0].ended:
        assert not context.join(0.01)
    assert context.results == ["first", None]
    (tmp_path / "go").touch()
    assert context.join()
    assert context.results == ["first", "second"]


def test_no_rank_is_nothing_to_do(method: str) -> None:
    assert nbmp.launch(rank_alone, (), 0, start_method=method) == []
    assert nbmp.start_processes(rank_alone, (), 0, start_method=method) is None
    context = functions.begin(rank_alone, (), 0, method)
    assert context.join()
    assert context.pids() == []
    assert context.finished.is_set()


def test_pids_and_processes_are_in_rank_order(method: str) -> None:
    context = functions.begin(functions.pid, (), 3, method)
    assert context.join()
    assert context.results == context.pids() == [process.pid for process in context.processes]
    assert os.getpid() not in context.pids()
    assert [process.exitcode for process in context.processes] == [0, 0, 0]
    assert [process.name for process in context.processes] == ["rank-0", "rank-1", "rank-2"]


def test_sentinels_shrink_as_ranks_end(method: str, tmp_path: Path) -> None:
    context = functions.begin(functions.wait_for, (str(tmp_path / "go"),), 2, method)
    assert sorted(context.sentinels.values()) == [0, 1]
    (tmp_path / "go").touch()
    assert context.join()
    assert context.sentinels == {}


VALUES = [None, True, 2**80, 1.5, "text", b"bytes", [1, {"a": (2,)}], {3}, int, range(4)]


def test_every_kind_of_value_comes_back_equal(method: str) -> None:
    assert nbmp.launch(VALUES.__getitem__, (), len(VALUES), start_method=method) == VALUES


def test_large_result_comes_back_whole(method: str) -> None:
    (result,) = nbmp.launch(functions.count_up_to, (3_000_000,), start_method=method)
    assert result.dtype == np.int64
    assert np.array_equal(result, np.arange(3_000_000))
    result[0] = 7  # and is the receiver's own


def test_large_pickle_without_buffers_comes_back_whole(method: str) -> None:
    (result,) = nbmp.launch(functions.words, (200_000,), start_method=method)
    assert result == [f"word {index}" for index in range(200_000)]


def test_result_of_a_class_that_is_called(method: str) -> None:
    results: list[Any] = nbmp.launch(functions.Pair, ("b",), 2, start_method=method)
    assert [(pair.rank, pair.other) for pair in results] == [(0, "b"), (1, "b")]
