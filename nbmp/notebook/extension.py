"""`%load_ext nbmp`: the magics, and a table of the ranks at each launch."""

from typing import Any

from nbmp.notebook import leaving
from nbmp.notebook.live import pictures as live
from nbmp.notebook.live import unattended
from nbmp.notebook.magics import completion
from nbmp.notebook.magics.control import ControlMagics
from nbmp.notebook.magics.mpshm import MemoryMagics
from nbmp.notebook.magics.mpspawn import MpspawnMagics
from nbmp.notebook.memory import cells as memory_cells
from nbmp.notebook.output import ownframes
from nbmp.notebook.ranks import formatting, monitor


def load_ipython_extension(shell: Any) -> None:
    """Add the magics to this shell and show a table of the ranks at every launch from now on."""
    shell.register_magics(MpspawnMagics, ControlMagics, MemoryMagics)
    completion.enable(shell)
    transformers = _transformers(shell)
    if with_a_body not in transformers:
        transformers.append(with_a_body)
        shell.events.register("post_run_cell", live.settle)
    memory_cells.cells_of(shell)
    formatting.enable(shell)
    monitor.enable()
    leaving.enable(shell)
    ownframes.enable(shell)
    unattended.enable(shell)


def unload_ipython_extension(shell: Any) -> None:
    """Take all of that back. Ranks that run are not touched."""
    for kind in ("line", "cell"):
        for name in completion.PARSERS:
            shell.magics_manager.magics[kind].pop(name, None)
    completion.disable(shell)
    formatting.disable(shell)
    transformers = _transformers(shell)
    if with_a_body in transformers:
        transformers.remove(with_a_body)
        shell.events.unregister("post_run_cell", live.settle)
    memory_cells.disable()
    monitor.disable()
    leaving.disable()
    ownframes.disable(shell)
    unattended.disable(shell)


def with_a_body(lines: list[str]) -> list[str]:
    """Give a lone `%%mpspawn` line a blank body: IPython refuses a cell magic without one before the magic is
    asked."""
    if len(lines) == 1 and lines[0].split(maxsplit=1)[:1] == ["%%mpspawn"]:
        return [*lines, "\n"]
    return lines


def _transformers(shell: Any) -> list[Any]:
    found: list[Any] = shell.input_transformer_manager.cleanup_transforms
    return found
