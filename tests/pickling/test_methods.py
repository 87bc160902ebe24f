"""Bound methods whose function has another name than they have, or is not what that name finds."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

import nbmp


def hiding(function: Callable[..., Any]) -> Callable[..., Any]:
    """Replace a function by one of another name."""

    def replacement(*args: Any) -> Any:
        return function(*args)

    return replacement


class Base:
    def __init__(self, value: int) -> None:
        self.value = value

    def plain(self, x: int) -> Any:
        return "plain", self.value + x

    @hiding
    def decorated(self, x: int) -> Any:
        return "decorated", self.value + x

    def __private(self, x: int) -> Any:
        return "private", self.value + x

    @classmethod
    def of_class(cls, x: int) -> Any:
        return cls.__name__, x

    def private(self) -> Callable[..., Any]:
        return self.__private


class Derived(Base):
    def plain(self, x: int) -> Any:
        return "overridden", x

    def inherited(self) -> Callable[..., Any]:
        return super().plain


def assigned() -> Any:
    base = Base(3)
    vars(base)["plain"] = lambda x: ("of the instance", x)
    return Base.plain.__get__(base)


METHODS = {
    "plain": Base(1).plain,
    "decorated": Base(1).decorated,
    "private": Base(1).private(),
    "overridden": Derived(1).plain,
    "super": Derived(1).inherited(),
    "class": Derived.of_class,
    "hidden by an attribute": assigned(),
    "built in": [1, 2].count,
    "of a library": Fraction(7, 9).limit_denominator,
}


@pytest.mark.parametrize("name", METHODS)
def test_method_arrives_as_what_it_was(name: str) -> None:
    method, queue = METHODS[name], nbmp.Queue()
    queue.put(method)  # by name
    queue.put((method, lambda: None))  # by value
    for arrived in (queue.get(timeout=20), queue.get(timeout=20)[0]):
        assert arrived(1) == method(1)
