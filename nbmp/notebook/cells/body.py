"""The body of a `%%mpspawn` cell in a rank.

Importable without IPython: a rank that needs no shell never imports it.
"""

import linecache
import marshal
import sys
from inspect import CO_COROUTINE
from types import CodeType, FunctionType
from typing import Any

from nbmp.pickling.rebuilding import remember_source

NEED_A_SHELL = ("get_ipython", "display")


class CellBody:
    """A compiled cell body; called with the rank, returns the value of its last expression.

    Everything but the way out of the launching process (`__init__`, `__reduce__`) runs in the rank.

    `anchor` is a function whose globals are the namespace to run in, and whose code names the globals that
    the body uses. In a forked rank that namespace is the notebook's own. On the way to a spawned rank the
    pickler takes along what the anchor names and gives all functions of one pickle that shared a namespace a
    common new one, so the body and the notebook's functions share their globals there too."""

    def __init__(
        self, codes: tuple[CodeType, ...], anchor: FunctionType, world_size: int, shell_names: tuple[str, ...]
    ):
        self.codes = codes
        self.anchor = anchor
        self.world_size = world_size
        self.shell_names = shell_names
        """Names that IPython gives to a notebook and that the body uses: they do not travel, the rank has its
        own."""

    def __reduce__(self) -> tuple[Any, ...]:
        # marshal keeps the cell's file name; the two interpreters are the same
        filename = self.codes[0].co_filename
        source = "".join(linecache.getlines(filename)) or None
        return _arrive, (marshal.dumps(self.codes), self.anchor, self.world_size, self.shell_names, filename, source)

    def __call__(self, rank: int) -> Any:
        namespace = self.anchor.__globals__
        namespace.update(__name__="__main__", rank=rank, world_size=self.world_size)
        self._provide_shell(namespace)
        if any(code.co_flags & CO_COROUTINE for code in self.codes):
            result = _run_async(self.codes, namespace)
        else:
            result = None
            for code in self.codes:
                result = eval(code, namespace)
        _show_open_figures()
        return result

    def _provide_shell(self, namespace: dict[str, Any]) -> None:
        wanted = any(name in self.shell_names for name in NEED_A_SHELL) and "get_ipython" not in namespace
        if wanted or "nbmp.notebook.cells.inrank" in sys.modules:
            from nbmp.notebook.cells import inrank

            inrank.adopt(namespace, wanted)


def _arrive(
    codes: bytes,
    anchor: FunctionType,
    world_size: int,
    shell_names: tuple[str, ...],
    filename: str,
    source: str | None,
) -> CellBody:
    remember_source(filename, source)
    return CellBody(marshal.loads(codes), anchor, world_size, shell_names)


def _run_async(codes: tuple[CodeType, ...], namespace: dict[str, Any]) -> Any:
    import asyncio  # a third of the time that a rank takes to start, for bodies that await something

    async def run() -> Any:
        result = None
        for code in codes:
            result = eval(code, namespace)
            if code.co_flags & CO_COROUTINE:
                result = await result
        return result

    # A forked rank has inherited the mark that a loop is running in this thread; it runs in the kernel.
    asyncio._set_running_loop(None)
    with asyncio.Runner() as runner:
        return runner.run(run())


def _show_open_figures() -> None:
    """Display the figures that the body left open, as a notebook does after a cell."""
    backend = sys.modules.get("matplotlib_inline.backend_inline")
    if backend is not None and "matplotlib.pyplot" in sys.modules and "IPython" in sys.modules:
        backend.flush_figures()
