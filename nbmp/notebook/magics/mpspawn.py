"""`%%mpspawn`: a cell in N ranks. Parses its line, compiles the body, starts ranks as `nbmp.launch` does."""

import re
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from typing import Any

from IPython.core.error import UsageError
from IPython.core.magic import Magics, line_cell_magic, magics_class

from nbmp.errors import CannotTravelError
from nbmp.launching.context import ProcessContext
from nbmp.launching.start import start
from nbmp.launching.timeouts import join_in_time
from nbmp.notebook.cells.source import Source
from nbmp.notebook.magics import background, naming
from nbmp.notebook.magics.arguments import Options, parse, parser
from nbmp.notebook.output.results import Results
from nbmp.notebook.ranks import monitor


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
            context = _launch(source, options, partial(self._go_on, source, options))
        if options.bg:
            return None
        results = context.results if options.name else context.take_results()
        if options.out:
            self.shell.user_ns[options.out] = results
        return Results(results) if _is_shown(source, results) else None

    def _go_on(self, source: Source, options: Options, context: ProcessContext) -> None:
        """The ranks have been started."""
        if options.name:
            self._bind(options.name, context)
        if not options.bg:
            join_in_time(context, options.timeout, options.grace_period)
            return
        if options.out:
            background.bind_results(self.shell.user_ns, options.out, context)
        background.watch(self.shell, context, options, lambda results: _is_shown(source, results))

    def _bind(self, name: str, context: ProcessContext) -> None:
        before = self.shell.user_ns.get(name)
        self.shell.user_ns[name] = context
        if isinstance(before, ProcessContext) and not before.finished.is_set():
            other = naming.name_of(self.shell, before)
            print(f"{name} is this launch now; the one before runs on as {other} (%mpstop {other} ends it)")


def _is_shown(source: Source, results: list[Any]) -> bool:
    return source.has_value and any(result is not None for result in results)


def _launch(source: Source, options: Options, go_on: Callable[[ProcessContext], None]) -> ProcessContext:
    at_home: set[str] = set()
    while True:
        body = source.body(options.nprocs, at_home)
        try:
            return start(
                body,
                (),
                options.nprocs,
                False,
                options.start_method,
                options.threads,
                options.env,
                go_on,
                gpus=options.gpus,
            )
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
