"""A launching process that is killed, alone or with its process group: its ranks end and its memory goes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from tests import scripts
from tests.soak.chance import Chance
from tests.waiting import none_runs, until

PROGRAM = """
import sys
import nbmp
from tests import leaks
from tests.soak import work
method, strategy = sys.argv[1:]
nbmp.set_sharing_strategy(strategy)
array = nbmp.ones(30_000)
def start(target):
    return nbmp.start_processes(target, (), 2, join=False, start_method=method)
contexts = [start(work.wait), start(work.compute)]
line = nbmp.Queue()
line.put(array)
session = leaks.own_session()
print(session.name if session else "none", *(pid for context in contexts for pid in context.pids()), flush=True)
nbmp.start_processes(work.produce, (line, 10**6, [array]), 1, start_method=method)
"""
RANKS_SECONDS, NAMES_SECONDS = 10.0, 20.0


def of_a_launcher(chance: Chance) -> None:
    method, strategy = chance.method(), chance.random.choice(("file_descriptor", "file_system"))
    command = [sys.executable, "-c", PROGRAM, method, strategy]
    launcher = subprocess.Popen(
        command, env=scripts.environment(), stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    assert launcher.stdout is not None
    name, *words = launcher.stdout.readline().split() or [""]
    pids = [int(word) for word in words]
    assert len(pids) == 4, "the launcher did not start its ranks"
    time.sleep(chance.moment())
    if chance.random.random() < 0.5:
        os.kill(launcher.pid, signal.SIGKILL)
    else:
        os.killpg(launcher.pid, signal.SIGKILL)
    launcher.wait()
    launcher.stdout.close()
    begun = time.monotonic()
    assert until(lambda: none_runs(pids), RANKS_SECONDS), f"ranks of a killed launcher are alive: {pids}"
    took = time.monotonic() - begun
    chance.counts.update({"launchers killed": 1, "launchers whose ranks took over 2 s": took > 2})
    assert until(lambda: not Path(f"/dev/shm/{name}").exists(), NAMES_SECONDS), f"{name} stays behind"
