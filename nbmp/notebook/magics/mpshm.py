"""`%mpshm`: the view of shared memory."""

from typing import Any

from IPython.core.magic import Magics, line_magic, magics_class

from nbmp.memory.janitor import trim
from nbmp.memory.leftovers import remove_leftovers
from nbmp.monitoring.memory.text import ROWS
from nbmp.monitoring.snapshots import size
from nbmp.notebook.magics.parsing import Parser
from nbmp.notebook.memory.monitor import memory_monitor


def parser() -> Parser:
    """Return the parser of `%mpshm`."""
    found = Parser(
        "%mpshm",
        "Show the shared memory that there is: which arrays, where they were made, who has them mapped.",
        "It keeps up to date while the notebook is used, until another one is shown.\n\n    %mpshm\n    %mpshm --all\n",
    )
    found.add_argument("--all", action="store_true", help="all arrays, not only the largest")
    found.add_argument("--once", action="store_true", help="as it is now, not kept up to date")
    found.add_argument("--trim", action="store_true", help="first give back what is cached: nbmp.trim()")
    found.add_argument("--clean", action="store_true", help="first remove what dead sessions left in /dev/shm")
    return found


@magics_class
class MemoryMagics(Magics):
    """The magic of shared memory."""

    shell: Any

    @line_magic
    def mpshm(self, line: str) -> None:
        """Show the shared memory that there is; `%mpshm --help` tells the options."""
        asked = parser()
        options = asked.parse_line(line)
        if options.help:
            print(asked.format_help(), end="")
            return
        if options.trim:
            trim()
        if options.clean:
            gone = remove_leftovers()
            print(f"removed what {len(gone)} dead sessions left: {size(sum(one.bytes for one in gone))}")
        memory_monitor(rows=None if options.all else ROWS, moves=not options.once)
