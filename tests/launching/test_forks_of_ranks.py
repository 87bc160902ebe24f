"""Children that the user's function forks and that come back out of it, or leave by an exception: they are no ranks."""

from __future__ import annotations

import os
import sys

import pytest

import nbmp


def fork(rank: int, how: str) -> int | str:
    pid = os.fork()
    if pid == 0:
        if how == "return":
            return "of the child"
        if how == "exit":
            sys.exit(3)
        raise RuntimeError("in the child")
    os.waitpid(pid, 0)
    return rank


@pytest.mark.parametrize("how", ["return", "exit", "raise"])
def test_outcome_of_a_child_that_a_rank_forked_is_not_the_ranks(method: str, how: str) -> None:
    assert nbmp.launch(fork, (how,), 2, start_method=method) == [0, 1]
