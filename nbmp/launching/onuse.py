"""Builtins that stand for a function elsewhere and load it when they are called. Every line runs in the rank."""

import builtins
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lend(names: Mapping[str, str]) -> None:
    """Make `name -> "module:function"` builtins, but for those that there are."""
    for name, place in names.items():
        if not hasattr(builtins, name):
            setattr(builtins, name, _standing_for(place))


def _standing_for(place: str) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        module, _, function = place.partition(":")
        return getattr(import_module(module), function)(*args, **kwargs)

    return call
