"""Whether a module of the user's was reloaded (`importlib.reload`, `%autoreload`): workers still have the old one."""

import os
import sys
import sysconfig
from collections.abc import Callable, Mapping
from functools import cache
from itertools import repeat
from operator import is_not
from pathlib import Path
from typing import Any

patched: list[Callable[[], Mapping[str, float]]] = []
"""What tells which modules a notebook may have changed in place, without a reload: when their files were written then.
"""


class Reloads:
    """Knows the user's modules as they were when `happened` was last asked."""

    def __init__(self) -> None:
        self._count = -1
        self._specs: dict[str, Any] = {}
        self._written: dict[str, float] = {}
        """When the files were written that the modules are as."""
        self.happened()

    def happened(self) -> bool:
        """Return whether one was reloaded since the last call. A reload makes a new spec."""
        modules = sys.modules
        found = any(self._are_patched(tell()) for tell in patched)
        known = self._specs.values()
        # Before every call to a pool, so without a step of Python's for each module.
        specs = map(getattr, map(modules.get, self._specs), repeat("__spec__"), known)
        found = any(map(is_not, specs, known)) or found
        if found or len(modules) != self._count:
            self._specs = {name: module.__spec__ for name, module in list(modules.items()) if _is_users(module)}
            self._written = {name: self._written.get(name) or _time_of(spec) for name, spec in self._specs.items()}
            self._count = len(modules)
        return found

    def _are_patched(self, times: Mapping[str, float]) -> bool:
        changed = {name: times[name] for name, when in self._written.items() if times.get(name, when) != when}
        self._written.update(changed)
        return bool(changed)


def _time_of(spec: Any) -> float:
    try:
        return os.stat(spec.origin).st_mtime
    except OSError:
        return 0.0


def _is_users(module: Any) -> bool:
    file = getattr(getattr(module, "__spec__", None), "origin", None)
    return isinstance(file, str) and file.endswith(".py") and not file.startswith(_library_folders())


@cache
def _library_folders() -> tuple[str, ...]:
    paths = sysconfig.get_paths()
    ours = str(Path(__file__).parents[1])
    return (ours + os.sep, *(paths[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")))
