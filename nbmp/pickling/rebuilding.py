"""Functions that rebuild what `leaving` reduced, in the receiving process."""

import functools
import linecache
import pickle
import sys
import types
from typing import Any


def code_of_file(arguments: tuple[Any, ...], filename: str, source: str | None) -> types.CodeType:
    """Return the code under its own file name; source that came along is put where tracebacks look for it."""
    remember_source(filename, source)
    return types.CodeType(*arguments).replace(co_filename=filename)


def remember_source(filename: str, source: str | None) -> None:
    """Let tracebacks and warnings know the source of a file that does not exist."""
    if source is not None and filename not in linecache.cache:
        linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)


def cached(function: Any, maxsize: int | None, typed: bool) -> Any:
    """Return the function with a cache of its own, which is empty."""
    return functools.lru_cache(maxsize, typed)(function)


def main_class(qualname: str, by_value: bytes) -> Any:
    """Return the class of this name that `__main__` has here, else the one that was sent."""
    found: Any = sys.modules["__main__"]
    for name in qualname.split("."):
        found = getattr(found, name, None)
    return found if isinstance(found, type) else pickle.loads(by_value)


def exception(kind: type[BaseException], args: tuple[Any, ...]) -> BaseException:
    """Return an exception without calling an `__init__` written in Python, which may take other arguments.

    The `__init__` of the built-in base it has (OSError, UnicodeDecodeError, SystemExit, ...) is what took `args`.
    """
    error = kind.__new__(kind, *args)
    for base in kind.__mro__:
        if isinstance(vars(base).get("__init__"), types.WrapperDescriptorType):
            base.__init__(error, *args)  # type: ignore[misc]
            break
    return error


def exception_state(error: BaseException, state: dict[str, Any]) -> None:
    """Give an exception its attributes; a class may refuse to have them set (a frozen dataclass does)."""
    for name, value in state.items():
        object.__setattr__(error, name, value)
