"""B08, B19, B25: how ranks end, and how it is told."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from tests.notebook.kernels import Kernel

pytestmark = pytest.mark.may_keep("descriptors")  # jupyter_client keeps an event loop in this process

STUBBORN = """
def stubborn(rank):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    open(f'pid{rank}', 'w').write(str(os.getpid()))
    while True:
        try: time.sleep(60)
        except KeyboardInterrupt: pass
def ok(rank): return rank
"""


def wait_for(is_met: Callable[[], bool], seconds: float) -> bool:
    end = time.monotonic() + seconds
    while not is_met() and time.monotonic() < end:
        time.sleep(0.02)
    return is_met()


def pids_written(folder: Path, count: int) -> list[int]:
    files = [folder / f"pid{rank}" for rank in range(count)]
    assert wait_for(lambda: all(file.exists() and file.read_text() for file in files), 30)
    return [int(file.read_text()) for file in files]


def test_the_stop_button_ends_ranks_that_will_not_listen(fresh_kernel: Kernel, tmp_path: Path, method: str) -> None:
    fresh_kernel.run(STUBBORN)
    cell = fresh_kernel.start(f"mp.start_processes(stubborn, nprocs=2, start_method={method!r})")
    pids = pids_written(tmp_path, 2)
    pressed = time.monotonic()
    fresh_kernel.interrupt()
    fresh_kernel.until(lambda: bool(cell.ended), "the interrupted cell is done")
    assert cell.ended - pressed < 5
    assert wait_for(lambda: not any(map(psutil.pid_exists, pids)), 5 - (time.monotonic() - pressed))
    assert cell.of("error")[0].content["ename"] == "KeyboardInterrupt"
    assert cell.error.count("KeyboardInterrupt") <= 3  # one traceback of IPython's
    fresh_kernel.run(f"assert mp.launch(ok, nprocs=2, start_method={method!r}) == [0, 1]")


@pytest.mark.parametrize("whole_group", [False, True])
def test_nothing_survives_a_killed_kernel(fresh_kernel: Kernel, tmp_path: Path, method: str, whole_group: bool) -> None:
    fresh_kernel.run(STUBBORN)
    fresh_kernel.run(f"""
a = mp.zeros((1000, 1000))
from concurrent.futures import ThreadPoolExecutor
begin = lambda: mp.start_processes(stubborn, nprocs=2, join=False, start_method={method!r})
with ThreadPoolExecutor(1) as pool: ctx = pool.submit(begin).result()
open('kernel', 'w').write(str(os.getpid()))
""")
    ranks = pids_written(tmp_path, 2)
    kernel_pid = int((tmp_path / "kernel").read_text())
    helpers = [child.pid for child in psutil.Process(kernel_pid).children(recursive=True)]
    (os.killpg if whole_group else os.kill)(kernel_pid, signal.SIGKILL)
    assert wait_for(lambda: not any(map(psutil.pid_exists, ranks)), 2)
    assert wait_for(lambda: not any(map(psutil.pid_exists, helpers)), 10)
    makers = {str(pid) for pid in (kernel_pid, *ranks, *helpers)}
    assert not [path for path in Path("/dev/shm").glob("nbmp*/*") if path.name.split("-")[0] in makers]


def test_ranks_live_on_when_the_thread_that_started_them_ends(kernel: Kernel, method: str) -> None:
    kernel.run(f"""
def waits(rank): time.sleep(300)
def begin(): globals().update(c2=mp.start_processes(waits, nprocs=2, join=False, start_method={method!r}))
t = threading.Thread(target=begin); t.start(); t.join()
assert c2.join(timeout=2) is False
assert all(alive(p) for p in c2.pids())
c2.stop(1)
""")


def test_odd_exceptions_arrive(kernel: Kernel, method: str) -> None:
    kernel.run("""
import copy, pickle
class SimError(Exception):
    def __init__(self, step, reason): super().__init__(f'{reason} at step {step}')
class Locky(Exception):
    def __init__(self): super().__init__('has a lock'); self.l = threading.Lock()
def boom(x):
    if x == 2: raise Locky()
    if x == 3:
        class Local(Exception): pass
        raise Local('local class')
    raise SimError(x, 'diverged')
def rank_fn(rank, x): boom(x)
""")
    kernel.run(f"""
for x, name, text in ((1, 'SimError', 'diverged at step 1'), (2, 'Locky', 'has a lock'), (3, 'Local', 'local class')):
    fail = lambda: mp.start_processes(rank_fn, (x,), start_method={method!r})
    e = must_raise(fail, name, text, within=3, exc=mp.ProcessRaisedException)
    assert isinstance(e.__cause__, SimError) == (x == 1)
    for f in (pickle.loads(pickle.dumps(e)), copy.copy(e)):
        assert str(f) == str(e) and f.error_index == e.error_index == 0 and f.error_pid == e.error_pid
        assert f.failures == e.failures
""")
