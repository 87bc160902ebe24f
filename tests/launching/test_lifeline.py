"""The launching process is killed with -9: nothing of it runs on, whatever its ranks are doing."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from tests import scripts
from tests.scripts import family
from tests.waiting import content, none_runs, tell, until

LAUNCHING = """
    import ctypes, os, re, signal, subprocess, sys, threading, time
    import numpy as np
    import nbmp
    from tests.launching import functions
    from tests.waiting import tell

    method, what = sys.argv[1:]
    shared = nbmp.zeros(1_000_000)

    def rank_of_script(rank, shared):
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        shared[rank] = 1
        tell(f"pid{rank}", os.getpid())
        if what == "the GIL held in C":
            ctypes.PyDLL(None).sleep(60)
        elif what == "a hopeless regular expression":
            re.match("(a+)+b", "a" * 60)
        elif what == "grandchildren":
            subprocess.Popen(["sleep", "60"])
            if os.fork() == 0:
                signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 64))
            time.sleep(60)
        elif what == "ranks of its own":
            for inner in ("fork", "forkserver", "spawn"):
                nbmp.start_processes(functions.stay_whatever_is_asked, (f"inner-{rank}-{inner}",), 1, False,
                                     start_method=inner)
            time.sleep(60)
        elif what == "a halt":
            os.kill(os.getpid(), signal.SIGSTOP)
        else:
            signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 64))
            time.sleep(60)

    for rank in range(2):
        for inner in ("fork", "forkserver", "spawn"):
            os.makedirs(f"inner-{rank}-{inner}")

    def start():
        global context
        context = nbmp.start_processes(rank_of_script, (shared,), 2, join=False, start_method=method)

    thread = threading.Thread(target=start)
    thread.start()
    thread.join()
    functions.wait_for(0, "kill")
    if sys.argv[2] == "a crash":
        os.abort()
    time.sleep(60)
"""

SITUATIONS = [
    "sleep with all signals blocked",
    "the GIL held in C",
    "a hopeless regular expression",
    "a halt",
    "grandchildren",
    "ranks of its own",
]


@pytest.mark.parametrize("situation", SITUATIONS)
def test_nothing_outlives_a_launching_process_that_is_killed(method: str, situation: str, tmp_path: Path) -> None:
    with scripts.started(tmp_path, LAUNCHING, method, situation) as script:
        pids = [int(content(tmp_path / f"pid{rank}")) for rank in range(2)]
        expected = {"grandchildren": 6, "ranks of its own": 10}.get(situation, 2) + 1 + (method == "forkserver")
        assert until(lambda: len(family(tmp_path)) >= expected)
        if situation == "ranks of its own":
            for inner in ("fork", "forkserver", "spawn"):
                content(tmp_path / f"inner-1-{inner}" / "pid0")
        pids += family(tmp_path)
        script.send_signal(signal.SIGKILL)
        assert until(lambda: none_runs(pids) and not family(tmp_path), 2)
    assert not [path for path in Path("/dev/shm").glob("nbmp*/*") if path.name.split("-")[0] in map(str, pids)]


def test_nothing_outlives_a_launching_process_that_crashes(method: str, tmp_path: Path) -> None:
    with scripts.started(tmp_path, LAUNCHING, method, "a crash") as script:
        pids = [int(content(tmp_path / f"pid{rank}")) for rank in range(2)]
        tell(tmp_path / "kill", "now")
        script.wait(20)
        assert scripts.gone_soon(pids)
        assert script.returncode == -signal.SIGABRT


def test_launching_process_killed_with_its_whole_group_leaves_nothing(method: str, tmp_path: Path) -> None:
    with scripts.started(tmp_path, LAUNCHING, method, SITUATIONS[0]) as script:
        pids = [int(content(tmp_path / f"pid{rank}")) for rank in range(2)]
        pids += family(tmp_path)
        os.killpg(script.pid, signal.SIGKILL)
        assert scripts.gone_soon(pids)


def test_launching_process_ended_by_sigterm_leaves_nothing(method: str, tmp_path: Path) -> None:
    with scripts.started(tmp_path, LAUNCHING, method, SITUATIONS[0]) as script:
        pids = [int(content(tmp_path / f"pid{rank}")) for rank in range(2)]
        script.terminate()
        assert script.wait(20) == -signal.SIGTERM
        assert scripts.gone_soon(pids)
        assert none_runs(pids)
