"""A script that comes to its end while ranks run: it waits for them, or stops its daemons."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

import pytest

from tests import scripts
from tests.waiting import content, none_runs, tell

LEAVING = """
    import sys
    import nbmp
    from tests.launching import functions

    def rank_of_script(rank):
        functions.stay_then_wait(rank, ".")
        print("rank", rank, "came to its end")

    context = nbmp.start_processes(
        rank_of_script, nprocs=2, join=False, daemon=sys.argv[2] == "daemon", start_method=sys.argv[1]
    )
    for rank in range(2):
        functions.wait_for(0, f"pid{rank}")
    print("script came to its end", flush=True)
    EXIT
"""


def test_script_waits_for_its_ranks_and_shows_what_they_write(method: str, tmp_path: Path) -> None:
    with scripts.started(tmp_path, LEAVING.replace("EXIT", ""), method, "no daemon") as script:
        assert script.stdout is not None
        assert script.stdout.readline() == "script came to its end\n"
        pids = [int(content(tmp_path / f"pid{rank}")) for rank in range(2)]
        assert script.poll() is None
        tell(tmp_path / "go", "now")
        out, err = script.communicate(timeout=20)
    assert sorted(out.splitlines()) == ["[0] rank 0 came to its end", "[1] rank 1 came to its end"]
    assert (script.returncode, err) == (0, "")
    assert none_runs(pids)


def test_daemons_are_stopped_when_the_script_ends(method: str, tmp_path: Path) -> None:
    done = scripts.run(tmp_path, LEAVING.replace("EXIT", ""), method, "daemon")
    assert (done.returncode, done.stdout, done.stderr) == (0, "script came to its end\n", "")
    assert none_runs(int(content(tmp_path / f"pid{rank}")) for rank in range(2))


@pytest.mark.parametrize("leaving", ["sys.exit(3)", "raise ValueError(3)"])
def test_daemons_are_stopped_however_the_script_ends(method: str, leaving: str, tmp_path: Path) -> None:
    done = scripts.run(tmp_path, LEAVING.replace("EXIT", leaving), method, "daemon")
    assert done.returncode in (1, 3)
    assert none_runs(int(content(tmp_path / f"pid{rank}")) for rank in range(2))


def test_ranks_are_gone_when_the_script_leaves_by_os_exit(method: str, tmp_path: Path) -> None:
    done = scripts.run(tmp_path, LEAVING.replace("EXIT", "import os; os._exit(5)"), method, "no daemon")
    assert done.returncode == 5
    pids = [int(content(tmp_path / f"pid{rank}")) for rank in range(2)]
    assert scripts.gone_soon(pids)


def test_interrupt_while_the_script_waits_at_its_end_stops_ranks(method: str, tmp_path: Path) -> None:
    with scripts.started(tmp_path, LEAVING.replace("EXIT", ""), method, "no daemon") as script:
        assert script.stdout is not None
        script.stdout.readline()
        pids = [int(content(tmp_path / f"pid{rank}")) for rank in range(2)]
        while script.poll() is None and not none_runs(pids):  # it may not have come to its waiting yet
            script.send_signal(signal.SIGINT)
            try:
                script.wait(1)
            except subprocess.TimeoutExpired:
                continue
    assert none_runs(pids)


def test_no_warning_of_unclosed_things_at_exit(method: str, tmp_path: Path) -> None:
    source = "import sys, nbmp\nprint(nbmp.launch(lambda rank: rank, (), 2, start_method=sys.argv[1]))"
    done = scripts.run(tmp_path, source, method, env={"PYTHONDEVMODE": "1"})
    assert (done.returncode, done.stdout, done.stderr) == (0, "[0, 1]\n", "")
