"""B09, B10, B15, B21: random numbers, output, large arguments, threads and locks."""

from __future__ import annotations

import pytest

from tests.notebook.kernels import Kernel

pytestmark = pytest.mark.may_keep("descriptors")  # jupyter_client keeps an event loop in this process


def test_ranks_draw_different_and_repeatable_numbers(kernel: Kernel, method: str) -> None:
    kernel.run(f"""
import random
def draw(rank): return int(np.random.randint(10**9)), random.random()
def run(): return mp.launch(draw, nprocs=4, start_method={method!r})
np.random.seed(1); random.seed(1); np.random.rand()
state, plain = np.random.get_state()[1].copy(), random.getstate()
a = run()
assert len({{n for n, _ in a}}) == len({{x for _, x in a}}) == 4
assert (np.random.get_state()[1] == state).all() and random.getstate() == plain
np.random.seed(1); random.seed(1); np.random.rand()
assert run() == a
np.random.seed(2)
assert {{n for n, _ in run()}}.isdisjoint({{n for n, _ in a}})
""")


def test_numbers_of_an_unseeded_notebook_differ_from_launch_to_launch(fresh_kernel: Kernel, method: str) -> None:
    fresh_kernel.run(f"""
np.random.rand()
def draw(rank): return int(np.random.randint(10**9))
runs = [mp.launch(draw, nprocs=2, start_method={method!r}) for _ in range(2)]
assert len({{*runs[0], *runs[1]}}) == 4, runs
""")


def test_every_line_of_every_rank_shows_once_whole_and_in_order(kernel: Kernel, method: str) -> None:
    cell = kernel.run(f"""
import logging
logging.basicConfig(level=logging.INFO, format='%(levelname)s %(message)s', force=True)
def talk(rank):
    for i in range(3000): print(f'R{{rank}}:{{i}}:' + 'x' * 60)
    logging.info('log from %d', rank)
    print(f'tail {{rank}}', end='')
mp.start_processes(talk, nprocs=2, start_method={method!r})
""")
    lines = cell.text().splitlines()
    for rank in range(2):
        mine = [line for line in lines if line.startswith(f"[{rank}] ")]
        assert mine == [f"[{rank}] R{rank}:{i}:" + "x" * 60 for i in range(3000)] + [f"[{rank}] tail {rank}"]
    assert len(lines) == 6002
    assert sorted(cell.text("stderr").splitlines()) == ["[0] INFO log from 0", "[1] INFO log from 1"]


def test_late_output_belongs_to_the_cell_that_started_the_rank(kernel: Kernel, method: str) -> None:
    started = kernel.run(f"""
def late(rank):
    while not os.path.exists('go'): time.sleep(0.01)
    print('late line')
ctx = mp.start_processes(late, nprocs=1, join=False, start_method={method!r})
""")
    later = kernel.run("open('go', 'w'); ctx.join(); print('later cell')")
    kernel.until(lambda: "late line" in started.text(), "the late line is shown")
    assert later.text() == "later cell\n"


def test_last_words_of_a_killed_rank_are_shown(kernel: Kernel, method: str) -> None:
    cell = kernel.run(f"""
def crash(rank): print('last words', end=''); os.kill(os.getpid(), signal.SIGKILL)
try: mp.start_processes(crash, nprocs=1, start_method={method!r})
except mp.ProcessExitedException as e: assert e.signal_name == 'SIGKILL'
""")
    assert cell.text() == "[0] last words\n"


def test_a_large_argument_is_copied_once_for_all_ranks(kernel: Kernel, method: str) -> None:
    cell = kernel.run(f"""
import re
def private_mb(rank, a):
    a.sum()
    rollup = open('/proc/self/smaps_rollup').read()
    # "Private_Dirty" also counts a page of shared memory that no other rank happens to map right now, and "Anonymous"
    # what a fork shares with its parent; a copy of its own would count in both
    kb = dict(re.findall(r'(Private_Dirty|Anonymous): +(\\d+)', rollup))
    private = min(int(kb['Private_Dirty']), int(kb['Anonymous'])) // 1024
    a[0] = rank                       # each rank may write to its own
    return private, a[0]
def peak(): return int(re.search(r'VmHWM:\\s+(\\d+)', open('/proc/self/status').read())[1]) // 1024
big = np.ones(25_000_000)             # 200 MB
open('/proc/self/clear_refs', 'w').write('5')
before = peak()
found = mp.launch(private_mb, (big,), nprocs=3, start_method={method!r})
assert big[0] == 1 and [first for _, first in found] == [0, 1, 2]
print(peak() - before, *(mb for mb, _ in found))
del big
""")
    more_at_peak, *private = map(int, cell.text().split())
    assert len(private) == 3
    assert more_at_peak < 240  # of the launching process: one array at most
    assert max(private) < 90, private  # interpreter and numpy, not the array


def test_blas_works_in_ranks_and_afterwards(kernel: Kernel, method: str) -> None:
    kernel.run(f"""
a = np.random.rand(400, 400); a @ a; np.linalg.inv(a)
def blas(rank): return float((a @ a).sum()), float(np.linalg.inv(a).sum())
here = blas(0)
for there in mp.launch(blas, nprocs=2, start_method={method!r}): np.testing.assert_allclose(there, here, rtol=1e-6)
np.testing.assert_allclose(blas(0), here)
""")


def test_two_hundred_forks_while_nbmps_own_threads_are_busy(kernel: Kernel) -> None:
    kernel.run("""
def noisy(rank):
    while not os.path.exists('enough'): print('.' * 200); time.sleep(0.002)
bg = mp.start_processes(noisy, nprocs=1, join=False)
def quick(rank): print('ok')
for i in range(200):
    c = mp.start_processes(quick, nprocs=1, join=False, start_method='fork')
    assert c.join(timeout=10), i
open('enough', 'w'); bg.join()
""")


def test_no_fork_warning_reaches_the_user(kernel: Kernel) -> None:
    cell = kernel.run("""
import warnings; warnings.simplefilter('always')
def quick(rank): pass
mp.start_processes(quick, nprocs=2, start_method='fork')
""")
    assert cell.text("stderr") == ""
