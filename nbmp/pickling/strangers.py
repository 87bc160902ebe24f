"""Objects that belong to the notebook's process alone and stand for something else in a rank.

A cell's code may mention `get_ipython`, `display` or `exit`; in IPython each of them leads to the whole kernel. Named
here by text, so that the core does not import IPython.
"""

import sys
from importlib import import_module
from types import FunctionType
from typing import Any, NoReturn

STAND_INS = {
    "IPython.core.interactiveshell.InteractiveShell": "nbmp.notebook.cells.inrank:shell",
    "IPython.core.autocall.ExitAutocall": "nbmp.pickling.strangers:leaver",
    "IPython.core.interactiveshell._modified_open": "nbmp.pickling.strangers:plain_open",
}
"""A function, or a class or base class of an object -> `module:function` that returns its stand-in elsewhere."""

PACKAGES = {name.partition(".")[0] for name in STAND_INS} | {"ipykernel", "google"}


def reduce(obj: Any) -> tuple[Any, ...] | None:
    """Return how to pickle `obj` when it is one of those, else None."""
    named = obj if isinstance(obj, FunctionType) else type(obj)
    if (named.__module__ or "").partition(".")[0] in PACKAGES:
        for base in getattr(named, "__mro__", (named,)):
            stand_in = STAND_INS.get(f"{base.__module__}.{base.__qualname__}")
            if stand_in is not None:
                return make_stand_in, (stand_in,)
    return None


def make_stand_in(path: str) -> Any:
    """Call `module:function` and return its result."""
    module, _, function = path.partition(":")
    return getattr(import_module(module), function)()


def leaver() -> Any:
    """Return what `exit` and `quit` are in a rank."""
    return leave


def plain_open() -> Any:
    """Return what `open` is in a rank."""
    return open


def leave(code: object = None) -> NoReturn:
    """End the rank, as `sys.exit`."""
    sys.exit(code)  # type: ignore[arg-type]  # anything goes there
