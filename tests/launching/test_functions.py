"""What can be the function of a rank: everything that can be called."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import nbmp

AnyFunction = Callable[..., Any]


def wrapping(function: AnyFunction) -> AnyFunction:
    """A decorator that gives its function the name of the one it replaces."""

    @functools.wraps(function)
    def wrapper(*args: Any) -> Any:
        return function(*args)

    return wrapper


def hiding(function: AnyFunction) -> AnyFunction:
    """A decorator that does not."""

    def wrapper(*args: Any) -> Any:
        return function(*args)

    return wrapper


def plain(rank: int, base: int) -> int:
    return base + rank


kept_before_decoration = plain


@wrapping
def decorated(rank: int, base: int) -> int:
    return base + rank


@hiding
def hidden(rank: int, base: int) -> int:
    return base + rank


def replaced(rank: int, base: int) -> int:
    return base + rank


original_of_replaced = replaced
replaced = wrapping(replaced)  # its name leads to the wrapper now


def outer(offset: int) -> AnyFunction:
    def inner(rank: int, base: int) -> int:
        return base + rank + offset

    return inner


class Counter:
    start = 0

    def method(self, rank: int, base: int) -> int:
        return self.start + base + rank

    @classmethod
    def of_class(cls, rank: int, base: int) -> int:
        return cls.start + base + rank

    @staticmethod
    def static(rank: int, base: int) -> int:
        return base + rank

    def __call__(self, rank: int, base: int) -> int:
        return base + rank


def local_class() -> AnyFunction:
    class Local:
        def method(self, rank: int, base: int) -> int:
            return base + rank

    return Local().method


def with_default(rank: int, base: int, *, more: int = 0) -> int:
    return base + rank + more


def recursive(rank: int, base: int) -> int:
    return base if rank == 0 else 1 + recursive(rank - 1, base)


CALLABLES: dict[str, AnyFunction] = {
    "plain": plain,
    "lambda": lambda rank, base: base + rank,
    "closure": outer(0),
    "partial": functools.partial(lambda extra, rank, base: base + rank + extra, 0),
    "partial with keyword": functools.partial(with_default, more=0),
    "bound method": Counter().method,
    "class method": Counter.of_class,
    "static method": Counter.static,
    "callable object": Counter(),
    "method of a local class": local_class(),
    "decorated with wraps": decorated,
    "decorated without wraps": hidden,
    "original of a decorated one": original_of_replaced,
    "kept under another name": kept_before_decoration,
    "recursive": recursive,
}


@pytest.mark.parametrize("function", CALLABLES.values(), ids=CALLABLES)
def test_rank_calls_every_kind_of_function(method: str, function: AnyFunction) -> None:
    assert nbmp.launch(function, (10,), 2, start_method=method) == [10, 11]


def test_every_kind_of_function_can_be_an_argument(method: str) -> None:
    results = nbmp.launch(call_all, (CALLABLES,), 2, start_method=method)
    assert results == [dict.fromkeys(CALLABLES, 10), dict.fromkeys(CALLABLES, 11)]


def call_all(rank: int, functions: dict[str, AnyFunction]) -> dict[str, Any]:
    return {name: function(rank, 10) for name, function in functions.items()}


def counting(rank: int, end: int) -> Iterator[int]:
    yield from range(rank, end)


def total(rank: int, function: AnyFunction) -> int:
    return sum(function(rank, 4))


def test_generator_function_can_be_an_argument(method: str) -> None:
    assert nbmp.launch(total, (counting,), 2, start_method=method) == [6, 6]


def test_generator_as_a_result_is_an_error_that_names_it(method: str) -> None:
    with pytest.raises(nbmp.ProcessRaisedException, match=r"result cannot travel.*it is a generator; list"):
        nbmp.launch(counting, (4,), start_method=method)


def test_closure_over_a_closure_carries_both(method: str) -> None:
    inner = outer(5)
    assert nbmp.launch(lambda rank: inner(rank, 1) * 2, (), 2, start_method=method) == [12, 14]


def test_function_made_by_exec_without_a_file(method: str) -> None:
    names: dict[str, Any] = {"__name__": "__main__", "scale": 3}
    exec("def made(rank, base):\n    return base + scale * rank", names)
    assert nbmp.launch(names["made"], (10,), 2, start_method=method) == [10, 13]
