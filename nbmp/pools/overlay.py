"""What an initializer assigned stays, for every function that comes later. Runs in a worker.

    model = None
    def start(): global model; model = load()
    def work(x): return model(x)
    Pool(initializer=start).map(work, xs)

Functions of `__main__` travel by value, each call's with a namespace of its own that holds the values of the launching
process. So what `start` assigned is not in the namespace of `work`, and would be hidden by the None that came along.
Here the names that the initializer assigned are put into the namespace of each such function that arrives.
"""

import functools
from collections.abc import Callable
from typing import Any

_MISSING = object()


class Overlay:
    """Watches an initializer while it runs; `with Overlay(initializer): initializer()`."""

    def __init__(self, initializer: Callable[..., Any]) -> None:
        self._namespace = _namespace(initializer)
        self._before: dict[str, Any] = {}

    def __enter__(self) -> None:
        self._before = dict(self._namespace)

    def __exit__(self, *_: object) -> None:
        assigned = {
            name: value
            for name, value in self._namespace.items()
            if self._before.get(name, _MISSING) is not value and name != "__builtins__"
        }
        self._before.clear()
        if assigned and self._namespace.get("__name__") == "__main__":
            _apply_to_all(assigned)


def _namespace(function: Any) -> dict[str, Any]:
    """Return the globals of a function, seen through partials and methods; empty for what has none."""
    while True:
        if isinstance(function, functools.partial):
            function = function.func
        elif hasattr(function, "__func__"):
            function = function.__func__
        elif hasattr(function, "__wrapped__") and not hasattr(function, "__globals__"):
            function = function.__wrapped__
        else:
            found: dict[str, Any] = getattr(function, "__globals__", {})
            return found


def _apply_to_all(assigned: dict[str, Any]) -> None:
    """Have cloudpickle put these names into the globals of each function of `__main__` that it makes."""
    from cloudpickle import cloudpickle

    set_state = cloudpickle._function_setstate

    def set_state_and_names(function: Any, state: Any) -> None:
        set_state(function, state)
        if function.__globals__.get("__name__") == "__main__":
            function.__globals__.update(assigned)

    cloudpickle._function_setstate = set_state_and_names
