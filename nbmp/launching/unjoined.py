"""Failures of ranks that nobody has joined: said at exit, in one line each."""

import atexit
import sys
from multiprocessing.util import Finalize

from nbmp.launching.private import in_forked_child

_AT_LAST = -100
"""As a priority at exit: when multiprocessing has joined its processes."""

_lines: dict[int, str] = {}
_is_exiting = False
"""From here on it is not the user who joins."""


def remember(key: int, line: str) -> None:
    """Say this at exit, unless it is forgotten before."""
    _lines[key] = line


def forget(key: int) -> None:
    """Somebody has heard of it."""
    if not _is_exiting:
        _lines.pop(key, None)


def tell() -> None:
    """Say what is left."""
    for line in _lines.values():
        print(f"nbmp: {line}", file=sys.stderr)
    _lines.clear()


def _begin_exit() -> None:
    global _is_exiting
    _is_exiting = True


in_forked_child(_lines.clear)
atexit.register(_begin_exit)
Finalize(None, tell, exitpriority=_AT_LAST)
