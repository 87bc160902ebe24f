"""Programs of a user: scripts run as `python script.py`, looked at and signalled from outside."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import psutil

from tests.waiting import none_runs, until

ROOT = Path(__file__).resolve().parents[1]
SECONDS = 60


def environment(**extra: str) -> dict[str, str]:
    """Return an environment in which the package is found, without what pytest adds."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")]))
    return {**kept, "PYTHONPATH": path, **extra}


def write(folder: Path, source: str, name: str = "script.py") -> Path:
    path = folder / name
    path.write_text(textwrap.dedent(source))
    return path


def run(
    folder: Path,
    source: str,
    *arguments: str,
    before: Sequence[str] = (),
    env: Mapping[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run a script to its end, in `folder`; `before` is a command that runs it."""
    return subprocess.run(
        [*before, sys.executable, "-B", str(write(folder, source)), *arguments],
        cwd=folder,
        env=environment(**(env or {})),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )


def gone_soon(pids: Iterable[int], seconds: float = 2.0) -> bool:
    """Return whether none of these processes runs within `seconds`."""
    pids = list(pids)
    return until(lambda: none_runs(pids), seconds)


def family(folder: Path) -> list[int]:
    """Return the processes that work in `folder`: the script, its ranks, helpers, and all they started."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.cwd() == str(folder) and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process.pid)
        except psutil.Error:
            continue
    return found


def nobody_is_left(folder: Path, seconds: float = 2.0) -> bool:
    """Return whether nobody works in `folder` within `seconds`."""
    return until(lambda: not family(folder), seconds)


def output(folder: Path, source: str, *arguments: str) -> str:
    """Run a script that must end well and return what it printed."""
    done = run(folder, source, *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


@contextmanager
def started(folder: Path, source: str, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """A script that runs meanwhile, in a process group of its own; killed at the end if it still runs."""
    process = subprocess.Popen(
        [sys.executable, "-B", str(write(folder, source)), *arguments],
        cwd=folder,
        env=environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        process_group=0,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()
