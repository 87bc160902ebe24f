"""A real kernel: cells that launch, are interrupted, go wrong; at the end it is restarted, shut down or killed."""

from __future__ import annotations

import os
import signal
import tempfile
import time

from tests import scripts
from tests.notebook.kernels import Kernel
from tests.soak.chance import Chance

FIRST = """
%load_ext nbmp
import os, signal, time, numpy as np, nbmp as mp
table = mp.zeros(4)
def work(rank, table): table[rank] += 1; print("line of", rank); return rank
"""
GOOD = (
    "%%mpspawn -n 2 --out got\nprint('hello')\ntable[rank] = 1\nrank",
    "assert mp.launch(work, (table,), 2) == [0, 1]",
    "assert mp.launch(work, (table,), 2, start_method='forkserver') == [0, 1]",
    "with mp.Pool(2) as pool: assert pool.map(lambda x: x + 1, range(9)) == list(range(1, 10))",
    "%mpstatus",
    "q = mp.Queue()\nq.put(np.ones(50_000))\nassert q.get(timeout=20).sum() == 50_000",
    "%%mpspawn -n 2 --bg --name later\ntime.sleep(0.3)\nprint('later')",
)
BAD = (
    "%%mpspawn -n 2\n1 / 0",
    "def die(rank): os.kill(os.getpid(), signal.SIGKILL)\nmp.spawn(die, nprocs=2)",
)
BLOCKING = (
    "%%mpspawn -n 2\nfor i in range(10000):\n    print(i)\n    time.sleep(0.01)",
    "with mp.Pool(2) as pool: pool.map(time.sleep, [60] * 4)",
    "mp.Queue().get()",
)


def warm_up() -> None:
    """Have the libraries open what they keep: jupyter_client keeps an event loop in each process that uses it."""
    with tempfile.TemporaryDirectory() as folder:
        Kernel(folder, scripts.environment()).close()


def kernel(chance: Chance) -> None:
    with tempfile.TemporaryDirectory() as folder:
        subject = Kernel(folder, scripts.environment())
        try:
            subject.run(FIRST)
            for _ in range(chance.random.randrange(2, 6)):
                _cell(chance, subject)
            subject.run(GOOD[0])
        finally:
            if chance.random.random() < 0.3:
                os.kill(subject.pid, signal.SIGKILL)
            subject.close()
        left = subject.left_behind()
        assert not left, f"outlived its kernel: {left}"
        chance.counts.update(kernels=1)


def _cell(chance: Chance, subject: Kernel) -> None:
    kind = chance.random.random()
    if kind < 0.5:
        subject.run(chance.random.choice(GOOD))
    elif kind < 0.75:
        subject.run(chance.random.choice(BAD), fails=True)
        chance.counts.update(errors=1)
    else:
        cell = subject.start(chance.random.choice(BLOCKING))
        time.sleep(0.2 + chance.moment(1.0))
        subject.interrupt()
        subject.until(lambda: bool(cell.ended), "the interrupted cell is done")
        assert cell.status == "error", cell.text()
        chance.counts.update(interrupts=1)
    chance.counts.update(cells=1)
