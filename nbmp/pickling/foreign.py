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
_done: set[str] = set()


def reducers() -> dict[type, Callable[[Any], Any]]:
    """Return how to reduce objects of those libraries that are loaded; the same table each time, which grows."""
    for library, home in HOMES.items():
        if library in sys.modules and library not in _done and hasattr(sys.modules[library], "ndarray"):
            _done.add(library)  # before that import, which may come here again
            _found.update(import_module(home).REDUCERS)
    return _found
