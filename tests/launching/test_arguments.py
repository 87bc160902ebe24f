"""Wrong arguments: said at once, in words, and nothing is started."""

from __future__ import annotations

from typing import Any

import numpy as np
import psutil
import pytest

import nbmp
from tests.launching import functions


@pytest.mark.parametrize("start", [nbmp.launch, nbmp.start_processes, nbmp.spawn])
@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        (("not callable",), TypeError, "fn must be callable, not str"),
        ((functions.pid, (), 1.0), TypeError, "nprocs must be an int, not float"),
        ((functions.pid, (), True), TypeError, "nprocs must be an int, not bool"),
        ((functions.pid, (), "2"), TypeError, "nprocs must be an int, not str"),
        ((functions.pid, (), -1), ValueError, "nprocs must not be negative: -1"),
        ((functions.give, "ab"), TypeError, r"args must be a tuple.*not str.*args=\(x,\)"),
        ((functions.give, {"x": 1}), TypeError, r"args must be a tuple.*not dict.*args=\(x,\)"),
        ((functions.give, np.arange(3)), TypeError, r"args must be a tuple.*not ndarray.*args=\(x,\)"),
        ((functions.give, 7), TypeError, r"args must be a tuple.*not int.*args=\(x,\)"),
    ],
)
def test_wrong_argument_is_named(start: Any, arguments: tuple[Any, ...], error: type[Exception], words: str) -> None:
    before = len(psutil.Process().children())
    with pytest.raises(error, match=words):
        start(*arguments)
    assert len(psutil.Process().children()) == before


@pytest.mark.parametrize("wrong", ["frok", "", "Fork"])
def test_unknown_start_method_lists_the_known_ones(wrong: str) -> None:
    with pytest.raises(ValueError, match=f"unknown start method '{wrong}': it is one of fork, forkserver, spawn"):
        nbmp.launch(functions.pid, start_method=wrong)


@pytest.mark.parametrize("threads", [0, -1])
def test_number_of_threads_is_positive(threads: int) -> None:
    with pytest.raises(ValueError, match="threads must be at least 1"):
        nbmp.launch(functions.pid, threads=threads)


def test_number_of_threads_is_a_number() -> None:
    wrong: Any = "two"
    with pytest.raises(TypeError, match="threads must be an int, not str"):
        nbmp.launch(functions.pid, threads=wrong)


@pytest.mark.parametrize(
    ("env", "error", "words"),
    [
        ({"A": 1}, TypeError, "write 'A': '1'"),
        ({"": "1"}, ValueError, "a name is not empty"),
        ({"A=B": "1"}, ValueError, "has no '='"),
        ({"A": "1\0"}, ValueError, "NUL"),
    ],
)
def test_environment_that_cannot_be_is_named(env: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        nbmp.launch(functions.pid, env=env)


def test_args_may_be_a_list_or_an_iterator(method: str) -> None:
    assert nbmp.launch(functions.give, ["a"], 2, start_method=method) == ["a", "a"]
    assert nbmp.launch(functions.give, iter(["a"]), 2, start_method=method) == ["a", "a"]


def test_too_few_arguments_are_the_functions_own_error(method: str) -> None:
    with pytest.raises(
        nbmp.ProcessRaisedException, match=r"TypeError: give\(\) missing 1 required positional"
    ) as raised:
        nbmp.launch(functions.give, start_method=method)
    assert isinstance(raised.value.__cause__, TypeError)


def test_spawn_warns_of_another_start_method_and_spawns_all_the_same() -> None:
    with pytest.warns(FutureWarning, match="call start_processes") as warnings:
        context = nbmp.spawn(functions.pid, join=False, start_method="fork")
    assert warnings[0].filename == __file__
    assert context is not None
    assert context.start_method == "spawn"
    assert context.join()


def test_asked_for_method_is_used_and_the_reason_says_so(method: str) -> None:
    context = functions.begin(functions.pid, (), 1, method)
    assert context.join()
    assert context.start_method == method
    assert context.start_method_reason == "asked for"


def test_default_method_has_a_reason() -> None:
    choice = nbmp.default_start_method()
    assert choice.method in ("fork", "forkserver")
    assert choice.reason
    context = nbmp.start_processes(functions.pid, join=False)
    assert context is not None
    assert context.join()
    assert (context.start_method, context.start_method_reason) == choice


def test_number_of_ranks_may_be_an_integer_of_numpy(method: str) -> None:
    assert nbmp.launch(functions.give, (1,), np.int64(2), start_method=method) == [1, 1]  # type: ignore[arg-type]
