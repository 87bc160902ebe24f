"""Objects of libraries that nbmp does not need, whose memory or handles travel by a way of their own.

Named here by text: the module that knows the way is loaded when the library is there already.
"""

import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

HOMES = {"cupy": "nbmp.cuda.leaving"}
"""A library and the module whose `REDUCERS` maps its types to functions that reduce their objects."""

_found: dict[type, Callable[[Any], Any]] = {}
_awaited = tuple(HOMES)
"""Libraries that are not loaded yet."""


def reducers() -> dict[type, Callable[[Any], Any]]:
    """Return how to reduce objects of those libraries that are loaded; the same table each time, which grows."""
    for library in _awaited:
        if library in sys.modules:
            _learn(library)
    return _found


def _learn(library: str) -> None:
    global _awaited
    if hasattr(sys.modules[library], "ndarray"):  # else it is being loaded, or barred
        _awaited = tuple(name for name in _awaited if name != library)  # first: the import may come here again
        _found.update(import_module(HOMES[library]).REDUCERS)
