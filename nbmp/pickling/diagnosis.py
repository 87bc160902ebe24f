"""Which part of an object cannot be pickled: a path that a person can follow."""

import contextlib
import time
import types
from collections.abc import Callable, Iterator
from typing import Any

SECONDS = 1.5
"""How long the search may take; then the place found so far is named."""
SHOWN = 80
"""Characters of a key in a path."""


def find_culprit(obj: Any, name: str, can_leave: Callable[[Any], bool]) -> tuple[str, Any]:
    """Return the path to the innermost part that cannot leave (`args[1].model.lock`), and that part."""
    deadline = time.monotonic() + SECONDS
    seen = {id(obj)}
    while True:
        for suffix, part in _parts(obj):
            if time.monotonic() > deadline:
                return name, obj
            if id(part) not in seen and not can_leave(part):
                seen.add(id(part))
                name, obj = (name + suffix).removeprefix("."), part  # nothing before the dot: a field of the whole
                break
        else:
            return name, obj


def _parts(obj: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(obj, types.FunctionType):
        yield from _function_parts(obj)
    elif isinstance(obj, types.MethodType):
        yield ".__self__", obj.__self__
        yield ".__func__", obj.__func__
    elif isinstance(obj, dict):
        for key, value in obj.items():
            yield f"[{_shown(key)}]", value
        for key in obj:
            yield f" (its key {_shown(key)})", key
    elif isinstance(obj, list | tuple):
        fields = getattr(obj, "_fields", None)
        for index, value in enumerate(obj):
            yield f".{fields[index]}" if fields else f"[{index}]", value
    elif isinstance(obj, set | frozenset):
        for value in obj:
            yield f"{{{_shown(value)}}}", value
    if isinstance(obj, type):
        for key, value in vars(obj).items():
            if not key.startswith("__"):
                yield f".{key}", value
    elif hasattr(obj, "__dict__") and not isinstance(obj, types.ModuleType | types.FunctionType):
        for key, value in vars(obj).items():
            yield f".{key}", value
        for key in ("func", "args", "keywords"):  # functools.partial
            if hasattr(type(obj), key):
                yield f".{key}", getattr(obj, key)
    yield " (its class)", type(obj)


def _shown(obj: Any) -> str:
    try:
        text = repr(obj)
    except Exception:
        text = f"<{type(obj).__qualname__}>"
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."


def _function_parts(function: types.FunctionType) -> Iterator[tuple[str, Any]]:
    for label, part in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        with contextlib.suppress(ValueError):  # not bound yet
            yield f" -> {label} (a variable of the enclosing function)", part.cell_contents
    for label in _global_names(function.__code__):
        if label in function.__globals__:
            yield f" -> {label}", function.__globals__[label]
    for index, value in enumerate(function.__defaults__ or ()):
        yield f" -> default {index}", value
    for label, value in (function.__kwdefaults__ or {}).items():
        yield f" -> default of {label}", value


def _global_names(code: types.CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _global_names(constant)
