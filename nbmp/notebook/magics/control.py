"""`%mpstack`, `%mpstatus`, `%mpstop`: what runs, where it is, and its end. Each calls what anyone can call."""

from collections.abc import Callable
from typing import Any

from IPython.core.magic import Magics, line_magic, magics_class

from nbmp.monitoring.status import status
from nbmp.notebook.magics import naming
from nbmp.notebook.magics.parsing import Parser, seconds

GRACE_SECONDS = 3.0
"""From SIGTERM to SIGKILL for `%mpstop`."""

WORDS = "name of a launch or pool (a variable, or as in %%mpstatus), and numbers of ranks"


def stack_parser() -> Parser:
    """Return the parser of `%mpstack`."""
    parser = Parser(
        "%mpstack",
        "Where is it? Print the Python stacks of ranks at this moment, whatever they do.",
        "Ranks that are stopped, have ended or cannot answer say so.\n\n    %mpstack\n    %mpstack ctx 2 --all\n",
    )
    parser.add_argument("words", nargs="*", metavar="name|rank", help=f"{WORDS} (default: all that run)")
    parser.add_argument("--all", action="store_true", help="frames of libraries, nbmp and the interpreter too")
    parser.add_argument("--timeout", metavar="S", type=seconds, default=2.0, help="how long they may take (default: 2)")
    return parser


def status_parser() -> Parser:
    """Return the parser of `%mpstatus`."""
    return Parser("%mpstatus", "Print a table of all ranks that run, of all launches and pools.", "\n    %mpstatus\n")


def stop_parser() -> Parser:
    """Return the parser of `%mpstop`."""
    parser = Parser(
        "%mpstop",
        "End ranks that run: SIGTERM, a grace period, SIGKILL.",
        "Without a name all launches and processes end, pools only by name.\n\n    %mpstop\n    %mpstop ctx 2 3\n",
    )
    parser.add_argument("words", nargs="*", metavar="name|rank", help=WORDS)
    parser.add_argument(
        "--grace-period", metavar="S", type=seconds, default=GRACE_SECONDS, help="seconds to SIGKILL (default: 3)"
    )
    return parser


PARSERS: dict[str, Callable[[], Parser]] = {"mpstack": stack_parser, "mpstatus": status_parser, "mpstop": stop_parser}


@magics_class
class ControlMagics(Magics):
    """Magics for ranks that run."""

    shell: Any

    @line_magic
    def mpstack(self, line: str) -> None:
        """Print where ranks are at this moment; `%mpstack --help` tells the options."""
        parser = stack_parser()
        options = parser.parse_line(line)
        if options.help:
            print(parser.format_help(), end="")
            return
        found = naming.chosen(self.shell, options.words, parser)
        if not found:
            print("no ranks run")
        for name, group, ranks in found:
            if len(found) > 1:
                print(f"{name}:")
            told = group.stacks(ranks, timeout=options.timeout)
            print(told.text(all_frames=options.all, colour=True))

    @line_magic
    def mpstatus(self, line: str) -> None:
        """Print a table of all ranks that run; `%mpstatus --help` tells more."""
        parser = status_parser()
        if parser.parse_line(line).help:
            print(parser.format_help(), end="")
        else:
            print(status(naming.names(self.shell)))

    @line_magic
    def mpstop(self, line: str) -> None:
        """End ranks that run; `%mpstop --help` tells the options."""
        parser = stop_parser()
        options = parser.parse_line(line)
        if options.help:
            print(parser.format_help(), end="")
            return
        found = naming.chosen(self.shell, options.words, parser)
        named = any(not word.isdecimal() for word in options.words)
        to_stop = [one for one in found if named or one.group.kind != "pool"]
        pools = [name for name, group, ranks in found if group.kind == "pool" and ranks]
        if pools:
            raise parser.wrong(f"{pools[0]} is a pool, which would replace its workers: %mpstop {pools[0]} ends it")
        for name, group, ranks in to_stop:
            print(f"{name}: {group.halt(options.grace_period, ranks, reason='%mpstop')}")
        if not to_stop:
            print("no launch runs")
        for left in [one for one in found if one not in to_stop]:
            print(f"{left.name}: a pool, left alone (%mpstop {left.name} ends it)")
