"""The failure matrix: what a person gets for each thing that goes wrong, wherever it goes wrong.

    where it happens         x  how              x  start method  x  who started the rank
    8 places, in the rank       8 ways, below       fork             start_processes
    or the launching process                        forkserver       Pool
                                                    spawn            %%mpspawn

A row has two columns: for `start_processes` and `%%mpspawn`, which end in the same error, and for a pool's task.
Each is the error's class (`FINE`: none, the results are there) and what the message names besides the rank. Which start
method it was makes no difference but where `row` says so. Rank 1 of two is the one that fails; of a pool's two
workers the one that has the task.

Promised for every cell: `SECONDS`; the rank is named (`WHO`) where one failed; ranks are gone within two seconds, no
descriptor, name, thread or process is left; the next launch, or the pool, works.
"""

from __future__ import annotations

from typing import NamedTuple

METHODS = ("fork", "forkserver", "spawn")
FRONTS = ("start_processes", "Pool", "%%mpspawn")

SECONDS = 25.0
"""From the call to its end. Nearly all take less than one: this tells a hang from an end, on a busy machine."""

FINE = ""
RAISED, EXITED, WORKER = "ProcessRaisedException", "ProcessExitedException", "WorkerExitedError"
TRAVEL, INTERRUPT = "CannotTravelError", "KeyboardInterrupt"
GONE = "the launching process is gone"

WHO = {
    RAISED: r"rank 1 of 2|[Ww]orker [01] of the pool",
    EXITED: r"rank 1 of 2",
    WORKER: r"worker [01] of the pool",
}
"""How the error of each class names who failed."""


class Row(NamedTuple):
    """Class of the error, then regular expressions for what it names."""

    launch: tuple[str, ...]
    pool: tuple[str, ...]
    written: str = ""
    """What the rank's output shows, where nothing is raised."""


def both(*told: str) -> Row:
    return Row(told, told)


def ended(launch: str, pool: str, *, how: str, stage: str = "") -> Row:
    return Row((launch, how, stage), (pool, how))


STARTING, PICKLING, ENDING = "starting or unpickling its task", "pickling its result", "ending, after its function"
HANGS = Row((INTERRUPT, r"the ranks were stopped: ranks? (0 and )?1 "), (INTERRUPT, "the pool goes on"))
"""A hang lasts until somebody presses stop; then it is said what became of the rank."""

TABLE: dict[str, dict[str, Row]] = {
    "pickling the task": {  # in the launching process, before anything is started
        "exception": both(TRAVEL, "cannot travel to another process: the reason"),
        "exception that cannot travel": both(TRAVEL, "cannot travel to another process: the stuck reason"),
        "sys.exit": both("SystemExit", "3"),
        "os._exit": both(GONE, "3"),
        "SIGKILL": both(GONE, "-9"),
        "SIGSEGV": both(GONE, "-11"),
        "out of memory": both("MemoryError"),
        "hang": both(INTERRUPT),
    },
    "unpickling the task": {
        "exception": both(RAISED, "unpickling its task", "ValueError: the reason"),
        "exception that cannot travel": both(RAISED, "unpickling its task", "StuckError: the stuck reason"),
        "sys.exit": both(RAISED, "unpickling its task", "SystemExit: 3"),
        "os._exit": ended(EXITED, WORKER, how="exit code 3", stage=STARTING),
        "SIGKILL": ended(EXITED, WORKER, how="SIGKILL", stage=STARTING),
        "SIGSEGV": ended(EXITED, WORKER, how="SIGSEGV", stage=STARTING),
        "out of memory": both(RAISED, "unpickling its task", "MemoryError"),
        "hang": HANGS,
    },
    "importing": {  # of the function's module, to unpickle it; see `row`
        "exception": both(RAISED, "unpickling its task", "ValueError: the reason"),
        "exception that cannot travel": both(RAISED, "unpickling its task", "StuckError: the stuck reason"),
        "sys.exit": both(RAISED, "unpickling its task", "SystemExit: 3"),
        "os._exit": ended(EXITED, WORKER, how="exit code 3", stage=STARTING),
        "SIGKILL": ended(EXITED, WORKER, how="SIGKILL", stage=STARTING),
        "SIGSEGV": ended(EXITED, WORKER, how="SIGSEGV", stage=STARTING),
        "out of memory": both(RAISED, "unpickling its task", "MemoryError"),
        "hang": HANGS,
    },
    "running": {
        "exception": Row((RAISED, "ValueError: the reason"), ("ValueError", "the reason", "in happen")),
        "exception that cannot travel": both(RAISED, "StuckError: the stuck reason"),
        "sys.exit": ended(EXITED, WORKER, how="exit code 3"),
        "os._exit": ended(EXITED, WORKER, how="exit code 3"),
        "SIGKILL": ended(EXITED, WORKER, how="SIGKILL"),
        "SIGSEGV": ended(EXITED, WORKER, how="SIGSEGV", stage="in happen"),
        "out of memory": Row((RAISED, "MemoryError"), ("MemoryError", "in hoard")),
        "hang": HANGS,
    },
    "in a thread of the rank": {  # Python writes what a thread raises, and goes on
        "exception": Row((FINE,), (FINE,), written="ValueError: the reason"),
        "exception that cannot travel": Row((FINE,), (FINE,), written="StuckError: the stuck reason"),
        "sys.exit": both(FINE),
        "os._exit": ended(EXITED, WORKER, how="exit code 3"),
        "SIGKILL": ended(EXITED, WORKER, how="SIGKILL"),
        "SIGSEGV": ended(EXITED, WORKER, how="SIGSEGV", stage="in happen"),
        "out of memory": Row((FINE,), (FINE,), written="MemoryError"),
        "hang": Row(HANGS.launch, (FINE,)),  # a rank ends with its last thread, a task with its result
    },
    "pickling the result": {
        "exception": both(RAISED, "pickling its result", "result cannot travel", "ValueError: the reason"),
        "exception that cannot travel": both(RAISED, "pickling its result", "StuckError: the stuck reason"),
        "sys.exit": both(RAISED, "pickling its result", "SystemExit: 3"),
        "os._exit": ended(EXITED, WORKER, how="exit code 3", stage=PICKLING),
        "SIGKILL": ended(EXITED, WORKER, how="SIGKILL", stage=PICKLING),
        "SIGSEGV": ended(EXITED, WORKER, how="SIGSEGV", stage=PICKLING),
        "out of memory": both(RAISED, "pickling its result", "MemoryError"),
        "hang": HANGS,
    },
    "unpickling the result": {  # in the launching process
        "exception": Row((RAISED, "its result unpickled", "ValueError: the reason"), ("ValueError", "was unpickled")),
        "exception that cannot travel": Row((RAISED, "its result unpickled"), ("StuckError", "was unpickled")),
        "sys.exit": both(RAISED, "its result unpickled", "SystemExit: 3"),
        "os._exit": both(GONE, "3"),
        "SIGKILL": both(GONE, "-9"),
        "SIGSEGV": both(GONE, "-11"),
        "out of memory": Row((RAISED, "its result unpickled", "MemoryError"), ("MemoryError", "was unpickled")),
        "hang": Row((INTERRUPT, "the ranks were stopped: .*the result of rank 1 is still being unpickled"), HANGS.pool),
    },
    "at exit": {  # the result is there by then; Python writes what is raised; a pool has told of its tasks already
        "exception": Row((FINE,), (FINE,), written="ValueError: the reason"),
        "exception that cannot travel": Row((FINE,), (FINE,), written="StuckError: the stuck reason"),
        "sys.exit": Row((FINE,), (FINE,), written="SystemExit: 3"),
        "os._exit": Row((EXITED, "exit code 3", ENDING), (FINE,)),
        "SIGKILL": Row((EXITED, "SIGKILL", ENDING), (FINE,)),
        "SIGSEGV": Row((EXITED, "SIGSEGV", ENDING), (FINE,)),
        "out of memory": Row((FINE,), (FINE,), written="MemoryError"),
        "hang": Row(HANGS.launch, (FINE,)),  # a pool's worker is stopped after some seconds
    },
}

INHERITED = "a fork inherits its function and arguments: nothing of a task is pickled"
NO_SENSE = {
    (where, front, "fork"): INHERITED
    for where in ("pickling the task", "unpickling the task")
    for front in ("start_processes", "%%mpspawn")
}
"""Cells that there are not, and why: (where, front, start method)."""


def row(where: str, how: str, front: str, method: str) -> Row:
    """Return what is promised for a cell.

    Importing is unpickling only where a function of a module is sent. What a fork is to call is imported already, and a
    cell's body is no function of a module: there the import is a statement that runs.
    """
    if where == "importing" and (method == "fork" or front == "%%mpspawn"):
        where = "running"
    return TABLE[where][how]


def cells() -> list[tuple[str, str, str, str]]:
    """Return every cell that makes sense: front, method, where, how."""
    return [
        (front, method, where, how)
        for front in FRONTS
        for method in METHODS
        for where, rows in TABLE.items()
        for how in rows
        if (where, front, method) not in NO_SENSE
    ]
