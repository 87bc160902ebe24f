"""The options of `%%mpspawn`."""

from dataclasses import dataclass
from functools import lru_cache

from nbmp.notebook.magics.parsing import Parser, gpus, pair, seconds, variable, whole
from nbmp.platforms import cpu_count, visible_gpus

START_METHODS = ("fork", "forkserver", "spawn")

EPILOG = """\
The body runs in every rank with `rank` and `world_size` defined and the notebook's names at hand. Its last
expression is the rank's result; the list of results, by rank, is the cell's value. Under fork every name of
the notebook is there; under spawn and forkserver those that the body refers to, also through functions.
What the body assigns or changes stays in its rank, but for shared arrays: send it back as the last expression.
`random` and `numpy.random` are seeded for each rank, by their state in the notebook: after a seed there, each launch
draws the same numbers. A generator of the notebook repeats its numbers in every rank: make one in the body,
`rng = np.random.default_rng([seed, rank])`.
`{name}` in the options is the value of that variable: `-n {workers}`.

    %%mpspawn -n 4 --out sums
    sum(data[rank::world_size])

With --bg the notebook is free at once, and what the ranks print, display and return still appears below this cell;
`ctx.join()` waits for them. The interrupt button leaves them alone, but during `join`: %mpstop ctx ends them. They see
the notebook's names as they are now; later changes reach them through shared arrays and queues only. --out NAME is
there when all have ended well, not before.

    %%mpspawn -n 4 --bg --name ctx
    train(rank)
"""


@dataclass(frozen=True)
class Options:
    """One `%%mpspawn` line."""

    nprocs: int
    start_method: str | None
    bg: bool
    name: str | None
    out: str | None
    timeout: float | None
    grace_period: float | None
    threads: int | None
    env: dict[str, str]
    gpus: str | list[str] | None
    monitor: bool
    help: bool


def parse(line: str) -> Options:
    """Return the options in `line`; UsageError names what is wrong."""
    given = vars(parser().parse_line(line))
    given["env"] = dict(given["env"])
    if given["nprocs"] is None:
        given["nprocs"] = cpu_count()
    if given["gpus"] == "all" and not visible_gpus():
        raise parser().wrong("--gpus: there is no NVIDIA GPU that this process may use: leave it out, or list GPUs")
    if given["name"] and given["name"] == given["out"]:
        raise parser().wrong(f"--name and --out are two things: they cannot both be {given['name']}")
    return Options(**given)


def parser() -> Parser:
    """Return the parser of `%%mpspawn`."""
    return _parser(cpu_count())


@lru_cache(maxsize=1)
def _parser(cores: int) -> Parser:
    """Made once: that takes longer than a line to parse."""
    found = Parser("%%mpspawn", "Run this cell's body in several processes (ranks) at once.", EPILOG)
    add = found.add_argument
    add("-n", dest="nprocs", metavar="N", type=whole, help=f"number of ranks (default: cores, {cores})")
    found.add_choice("--start-method", START_METHODS, help="how to start them (default: fork where it is safe)")
    add("--bg", action="store_true", help="do not wait for the ranks: run them in the background")
    add(
        "--name",
        metavar="NAME",
        type=variable,
        help="bind the launch, a ProcessContext, to NAME before it is waited for",
    )
    add("--out", metavar="NAME", type=variable, help="also bind the list of results to NAME")
    add("--timeout", metavar="S", type=seconds, help="stop the ranks after S seconds (default: never)")
    add("--grace-period", metavar="S", type=seconds, help="seconds that ranks have to end when stopped")
    add("--threads", metavar="N", type=whole, help="BLAS/OpenMP threads per rank (default: cores / ranks)")
    add("--env", metavar="K=V", type=pair, action="append", default=[], help="set a variable; repeatable")
    add(
        "--gpus",
        metavar="G,G,..",
        type=gpus,
        nargs="?",
        const="all",
        help="one GPU for each rank, in turn, of these or (without a value) of all; it is device 0 there",
    )
    add("--no-monitor", dest="monitor", action="store_false", help="show no table of the ranks")
    return found
