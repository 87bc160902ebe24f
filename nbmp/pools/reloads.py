"""Whether a module of the user's was reloaded (`importlib.reload`, `%autoreload`): workers still have the old one."""

import sys
import sysconfig
from functools import cache
from typing import Any


class Reloads:
    """Knows the user's modules as they were when `happened` was last asked."""

    def __init__(self) -> None:
        self._count = -1
        self._specs: dict[str, Any] = {}
        self.happened()

    def happened(self) -> bool:
        """Return whether one was reloaded since the last call. Costs a microsecond: a reload makes a new spec."""
        modules = sys.modules
        found = False
        for name, spec in self._specs.items():
            module = modules.get(name)
            if module is not None and module.__spec__ is not spec:
                found = True
        if found or len(modules) != self._count:
            self._specs = {name: module.__spec__ for name, module in list(modules.items()) if _is_users(module)}
            self._count = len(modules)
        return found


def _is_users(module: Any) -> bool:
    file = getattr(getattr(module, "__spec__", None), "origin", None)
    return isinstance(file, str) and file.endswith(".py") and not file.startswith(_library_folders())


@cache
def _library_folders() -> tuple[str, ...]:
    paths = sysconfig.get_paths()
    return tuple(paths[name] for name in ("stdlib", "platstdlib", "purelib", "platlib"))
