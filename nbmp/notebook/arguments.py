"""The options of `%%mpspawn`."""

import argparse
import keyword
import shlex
from contextlib import suppress
from dataclasses import dataclass
from typing import NoReturn

from IPython.core.error import UsageError

from nbmp.platforms import cpu_count

START_METHODS = ("fork", "forkserver", "spawn")

EPILOG = """\
The body runs in every rank with `rank` and `world_size` defined and the notebook's names at hand. Its last
expression is the rank's result; the list of results, by rank, is the cell's value. Under fork every name of
the notebook is there; under spawn and forkserver those that the body refers to, also through functions.
`{name}` in the options is the value of that variable: `-n {workers}`.

    %%mpspawn -n 4 --out sums
    sum(data[rank::world_size])
"""


@dataclass(frozen=True)
class Options:
    """One `%%mpspawn` line."""

    nprocs: int
    start_method: str | None
    out: str | None
    timeout: float | None
    grace_period: float | None
    threads: int | None
    env: dict[str, str]
    monitor: bool
    help: bool


class _Parser(argparse.ArgumentParser):
    """Raises a UsageError of one line where argparse would end the process."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"%%mpspawn: {message} (%mpspawn --help lists the options)")


def parse(line: str) -> Options:
    """Return the options in `line`; UsageError names what is wrong."""
    try:
        words = shlex.split(line)
    except ValueError as error:
        raise UsageError(f"%%mpspawn: {error} in {line.strip()!r}") from None
    given = vars(_parser().parse_args(words))
    given["env"] = dict(given["env"])
    if given["nprocs"] is None:
        given["nprocs"] = cpu_count()
    return Options(**given)


def help_text() -> str:
    """Return what `--help` prints."""
    return _parser().format_help()


def _parser() -> _Parser:
    parser = _Parser(
        prog="%%mpspawn",
        description="Run this cell's body in several processes (ranks) at once.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        add_help=False,
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("-n", dest="nprocs", metavar="N", type=_whole, help=f"number of ranks (default: cores, {cpu_count()})")
    add("--start-method", choices=START_METHODS, help="how to start them (default: fork where it is safe)")
    add("--out", metavar="NAME", type=_name, help="also bind the list of results to NAME")
    add("--timeout", metavar="S", type=_seconds, help="stop the ranks after S seconds (default: never)")
    add("--grace-period", metavar="S", type=_seconds, help="seconds that ranks have to end when stopped")
    add("--threads", metavar="N", type=_whole, help="BLAS/OpenMP threads per rank (default: cores / ranks)")
    add("--env", metavar="K=V", type=_pair, action="append", default=[], help="set a variable; repeatable")
    add("--no-monitor", dest="monitor", action="store_false", help="show no table of the ranks")
    add("--help", action="store_true", help="print this text and start nothing")
    return parser


def _whole(text: str) -> int:
    with suppress(ValueError):
        if int(text) >= 1:
            return int(text)
    raise _unusable("a whole number of at least 1", text)


def _seconds(text: str) -> float:
    with suppress(ValueError):
        if 0 <= float(text) < float("inf"):
            return float(text)
    raise _unusable("a number of seconds", text)


def _name(text: str) -> str:
    if text.isidentifier() and not keyword.iskeyword(text):
        return text
    raise _unusable("a variable name", text)


def _pair(text: str) -> tuple[str, str]:
    name, sign, value = text.partition("=")
    if name and sign:
        return name, value
    raise _unusable("NAME=VALUE", text)


def _unusable(wanted: str, text: str) -> argparse.ArgumentTypeError:
    return argparse.ArgumentTypeError(f"needs {wanted}, not {text!r}")
