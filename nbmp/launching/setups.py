"""What the ranks of a launch are told before their tasks, read off the launching process at that moment."""

import os
import sys
from collections.abc import Mapping
from multiprocessing.process import current_process

from nbmp import platforms
from nbmp.launching import seeds
from nbmp.launching.default_method import chosen
from nbmp.launching.frontends import Frontend
from nbmp.launching.messages import Setup
from nbmp.launching.threads import THREAD_VARIABLES
from nbmp.launching.written import loggers
from nbmp.memory import strategy
from nbmp.pickling.arriving import TravellingFd


def setups(
    nprocs: int,
    daemon: bool,
    variables: Mapping[str, str],
    frontend: Frontend,
    *,
    inherits: bool,
    is_watched: bool = False,
) -> list[Setup]:
    process = current_process()
    environment = dict(os.environ)
    own_loggers, filters = ((), ()) if inherits else (loggers.loggers(), loggers.warning_filters())
    folder = _folder()
    sharing = strategy.choice()
    return [
        Setup(
            rank=rank,
            world_size=nprocs,
            name=f"rank-{rank}",
            daemon=daemon,
            parent=(process.name, os.getpid()),
            authkey=bytes(process.authkey),
            environment=environment,
            variables={"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(nprocs), **variables},
            seeds=rank_seeds,
            rank_setup=frontend.rank_setup,
            rank_builtins=dict(frontend.rank_builtins),
            is_watched=is_watched,
            loggers=own_loggers,
            warning_filters=filters,
            cwd=folder,
            path=list(sys.path),
            argv=list(sys.argv),
            start_method=chosen(),
            is_process=False,
            sharing=sharing,
            board=TravellingFd(0),
            crash=TravellingFd(1),
        )
        for rank, rank_seeds in enumerate(seeds.derive(nprocs))
    ]


def _folder() -> str | None:
    try:
        return os.getcwd()
    except FileNotFoundError:  # it was deleted
        return None


def thread_variables(nprocs: int, threads: int | None) -> tuple[dict[str, str], int | None]:
    """Return the variables to set for the ranks, and the threads for libraries that they inherit (None: leave)."""
    share = max(1, platforms.cpu_count() // max(1, nprocs)) if threads is None else threads
    free = [name for name in THREAD_VARIABLES if threads is not None or name not in os.environ]
    return dict.fromkeys(free, str(share)), share if len(free) == len(THREAD_VARIABLES) else None
