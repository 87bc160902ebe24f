"""Failures of ranks that nobody has joined: said at exit, in one line each."""

import atexit
import contextlib
import sys
from multiprocessing.util import Finalize

from nbmp.launching.private import in_forked_child

_AT_LAST = -100
"""As a priority at exit: when multiprocessing has joined its processes."""

MOST = 20
"""How many are kept."""

_lines: dict[int, str] = {}
_further = 0
_is_exiting = False
"""From here on it is not the user who joins."""


def remember(key: int, line: str) -> None:
    """Say this at exit, unless it is forgotten before."""
    global _further
    if len(_lines) < MOST:
        _lines[key] = line
    else:
        _further += 1


def forget(key: int) -> None:
    """Somebody has heard of it."""
    if not _is_exiting:
        _lines.pop(key, None)


def tell() -> None:
    """Say what is left."""
    lines = [*_lines.values(), *([f"and {_further} more like these"] if _further else [])]
    _forget_all()
    if sys.stderr is not None:
        with contextlib.suppress(Exception):  # at exit it may be closed
            sys.stderr.write("".join(f"nbmp: {line}\n" for line in lines))


def _forget_all() -> None:
    global _further
    _further = 0
    _lines.clear()


def _begin_exit() -> None:
    global _is_exiting
    _is_exiting = True


in_forked_child(_forget_all)
atexit.register(_begin_exit)
Finalize(None, tell, exitpriority=_AT_LAST)
