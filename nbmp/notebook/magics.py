"""`%%mpspawn`: a cell in N ranks. Parses its line, compiles the body, calls `nbmp.launch`."""

import re
from contextlib import nullcontext
from typing import Any

from IPython.core.error import UsageError
from IPython.core.magic import Magics, line_cell_magic, magics_class

from nbmp.errors import CannotTravelError
from nbmp.notebook import monitor
from nbmp.notebook.arguments import Options, parse, parser
from nbmp.notebook.source import Source


@magics_class
class MpspawnMagics(Magics):
    """The magics of nbmp."""

    shell: Any

    @line_cell_magic
    def mpspawn(self, line: str, cell: str | None = None) -> list[Any] | None:
        """Run this cell's body in several processes at once; `%mpspawn --help` tells the options."""
        options = parse(line)
        if options.help:
            print(parser().format_help(), end="")
            return None
        if cell is None:
            raise UsageError("%mpspawn: write %%mpspawn (two %) on top of the cell to run (%mpspawn --help tells more)")
        source = Source(self.shell, cell)
        if source.is_empty:
            raise UsageError("%%mpspawn: the cell has no body: nothing to run")
        with nullcontext() if options.monitor else monitor.hidden():
            results = _launch(source, options)
        if options.out:
            self.shell.user_ns[options.out] = results
        is_shown = source.has_value and any(result is not None for result in results)
        return results if is_shown else None


def _launch(source: Source, options: Options) -> list[Any]:
    from nbmp.launching.start import launch

    at_home: set[str] = set()
    while True:
        try:
            results: list[Any] = launch(
                source.body(options.nprocs, at_home),
                nprocs=options.nprocs,
                start_method=options.start_method,
                threads=options.threads,
                env=options.env,
                timeout=options.timeout,
                grace_period=options.grace_period,
            )
            return results
        except CannotTravelError as error:
            name, text = _culprit(error)
            if name in at_home or name not in source.guesses:
                raise UsageError(f"%%mpspawn: {text}") from None
            at_home.add(name)


def _culprit(error: CannotTravelError) -> tuple[str, str]:
    """Return the notebook's name that cannot travel, and the error's text with the path as a person writes
    it."""
    found = re.search(r"\.anchor -> (\w+)(.*)", error.path)
    if not found:
        return "", str(error)
    path = "".join(found.groups())
    return found[1], str(error).replace(error.path, path)
