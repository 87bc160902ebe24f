"""The notebook as the place that launches ranks: what the core asks for, answered with IPython."""

import threading
from collections.abc import Mapping
from contextlib import suppress
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from IPython.core.interactiveshell import InteractiveShell

from nbmp.launching import last
from nbmp.launching.frontends import Sink
from nbmp.notebook.cells import inrank
from nbmp.notebook.cells import names as cells
from nbmp.notebook.live import pictures as live
from nbmp.notebook.live import polling
from nbmp.notebook.output import publisher
from nbmp.notebook.output import sink as output
from nbmp.notebook.ranks import monitor
from nbmp.pools import reloads

if TYPE_CHECKING:
    from nbmp.launching.context import ProcessContext
    from nbmp.launching.registry import Group

INRANK = inrank.__name__
FOR_RANKS = (inrank, publisher)
"""Not needed here: a forked rank, which would import them, has them."""


class NotebookFrontend:
    """An IPython shell: a kernel or a terminal. One object per launch."""

    rank_setup: str | None = f"{INRANK}:install"
    rank_builtins: Mapping[str, str] = MappingProxyType(
        {name: f"{INRANK}:{name}" for name in ("display", "get_ipython")}
    )
    stops_ranks_at_exit = True

    def __init__(self, shell: Any):
        self._shell = shell
        self._kernel = getattr(shell, "kernel", None)
        self._watched = threading.Event()

    def sink(self, *, watched: bool = True) -> Sink:
        if not watched:
            self._watched.set()
        shows = watched and monitor.is_on(self._shell)
        return output.sink_here(self._shell, self._watched, shows_progress=shows)

    def watch(self, context: "ProcessContext") -> None:
        last.keep(context)
        # Whatever goes wrong with a picture of the ranks, they run on.
        try:
            with suppress(Exception):
                monitor.watch(self._shell, context)
        finally:
            self._watched.set()

    def while_waiting(self) -> None:
        with suppress(Exception):
            if polling.can_poll(self._kernel):
                polling.take_clicks(self._kernel)

    def monitor(self, group: "Group") -> bool:
        live.load_widgets()
        return monitor.show(self._shell, group)

    def cell_name(self, filename: str) -> str | None:
        return cells.cell_name(self._shell, filename)


def _autoreloaded() -> Mapping[str, float]:
    """Return when the files of modules were written that `%autoreload` has taken in: it may patch without a reload."""
    magics = getattr(InteractiveShell._instance, "magics_manager", None)
    autoreload = magics.registry.get("AutoreloadMagics") if magics is not None else None
    times: Mapping[str, float] = getattr(getattr(autoreload, "_reloader", None), "modules_mtimes", {})
    return times


reloads.patched.append(_autoreloaded)


def current() -> NotebookFrontend | None:
    """Return the front end of the shell that is alive in this process, None without one."""
    shell: Any = InteractiveShell._instance
    return NotebookFrontend(shell) if shell is not None else None
