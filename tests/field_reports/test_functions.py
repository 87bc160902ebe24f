"""B01, B12, B14, B17: what is called, and what is given to it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.notebook.conftest import ROOT
from tests.notebook.kernels import Kernel

pytestmark = pytest.mark.may_keep("descriptors")  # jupyter_client keeps an event loop in this process


def test_functions_classes_and_modules_of_earlier_cells_are_found(kernel: Kernel, method: str) -> None:
    kernel.run("""
import math as m
SCALE = 3
def helper(x): return m.sqrt(x) * SCALE
class Point:
    def __init__(self, x): self.x = x
""")
    kernel.run("def work(rank): return Point(helper(4 * rank))")
    kernel.run(f"""
points = mp.launch(work, nprocs=2, start_method={method!r})
assert [point.x for point in points] == [0.0, 6.0]
assert all(type(point) is Point for point in points)
SCALE = 5
assert [point.x for point in mp.launch(work, nprocs=2, start_method={method!r})] == [0.0, 10.0]
""")


def test_every_kind_of_function_can_be_a_rank(kernel: Kernel, method: str) -> None:
    kernel.run("""
import functools
def deco(fn):
    @functools.wraps(fn)
    def w(*a): return fn(*a)
    return w
def deco2(fn):
    def w(*a): return fn(*a)
    return w
def make(n):
    def inner(rank): return n + rank
    return inner
class C:
    k = 10
    def meth(self, rank): return self.k + rank
    @classmethod
    def of_class(cls, rank): return cls.k + rank
    @staticmethod
    def static(rank): return 10 + rank
    def __call__(self, rank): return self.k + rank
def base(rank): return 10 + rank
kept = base
@deco
def base(rank): return 10 + rank
@deco2
def dressed(rank): return 10 + rank
""")
    kernel.run(f"""
for fn in (lambda rank: 10 + rank, make(10), C().meth, C.of_class, C.static, C(), kept, base, dressed,
           functools.partial(lambda n, rank: n + rank, 10)):
    assert mp.launch(fn, nprocs=2, start_method={method!r}) == [10, 11], fn
def call(rank, fn): return fn(rank)
assert mp.launch(call, (lambda rank: rank + 1,), nprocs=2, start_method={method!r}) == [1, 2]
""")


def test_what_cannot_be_pickled_is_named_before_anything_starts(kernel: Kernel) -> None:
    kernel.run("""
class Model:
    def __init__(self): self.w = np.ones(3); self.lock = threading.Lock()
class Outer:
    def __init__(self): self.model = Model()
def r(rank, a, b): time.sleep(30)
before = kids()
for method in ('spawn', 'forkserver'):
    start = lambda bad: mp.start_processes(r, (1, bad), 3, start_method=method)
    for bad in (Model(), (i for i in range(3)), threading.current_thread()):
        must_raise(lambda: start(bad), 'args[1]', within=2)
        assert kids() == before
    must_raise(lambda: start(Outer()), 'args[1].model.lock', within=2)
assert kids() == before
""")


def test_exit_of_ipython_in_a_function_does_not_drag_the_kernel_along(kernel: Kernel, method: str) -> None:
    kernel.run(f"""
def leaves(rank): exit(0)
assert mp.launch(leaves, nprocs=2, start_method={method!r}) == [None, None]
def refuses(rank): quit(3)
e = must_raise(lambda: mp.launch(refuses, nprocs=2, start_method={method!r}), exc=mp.ProcessExitedException)
assert e.exit_code == 3
""") if method != "fork" else kernel.run("""
def leaves(rank): sys.exit(0)
assert mp.launch(leaves, nprocs=2, start_method='fork') == [None, None]
""")


def test_no_file_is_run_again_whatever_the_notebook_calls_itself(kernel: Kernel, method: str) -> None:
    kernel.run(f"""
open('side.py', 'w').write('open("ran.txt","a").write("x")\\ndef from_run(rank): return rank\\n')
def ok(rank): pass
for f in ('side.py', 'no_such_notebook.ipynb'):
    __file__ = os.path.abspath(f)
    mp.start_processes(ok, nprocs=2, start_method={method!r})
del __file__
assert not os.path.exists('ran.txt')
""")
    kernel.run(f"""
%run side.py
assert mp.launch(from_run, nprocs=2, start_method={method!r}) == [0, 1]
assert open('ran.txt').read() == 'x'
if __name__ == '__main__': mp.start_processes(ok, nprocs=2, start_method={method!r})
""")


def test_a_script_needs_no_guard(tmp_path: Path, method: str) -> None:
    script = tmp_path / "no_guard.py"
    script.write_text(f"""
import nbmp as mp
open('ran.txt', 'a').write('x')
SCALE = 3
def f(rank): return SCALE * rank
print(mp.launch(f, nprocs=2, start_method={method!r}))
""")
    run = subprocess.run(
        [sys.executable, str(script)],
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (run.returncode, run.stdout, run.stderr) == (0, "[0, 3]\n", "")
    assert (tmp_path / "ran.txt").read_text() == "x"


def test_b23_pools_have_modules_as_autoreload_has_left_them(fresh_kernel: Kernel) -> None:
    """It patches a module in place where it can, which leaves no trace in the module."""
    fresh_kernel.run("""
def write(text):
    open('tool_b23.py', 'w').write(f'def v():\\n    return {text!r}\\n')
    os.utime('tool_b23.py', (2e9 + len(text),) * 2)
""")
    fresh_kernel.run(
        "sys.dont_write_bytecode = True; sys.path.insert(0, ''); write('old'); import tool_b23\n"
        "pools = [mp.get_context(method).Pool(1) for method in ('fork', 'forkserver', 'spawn')]\n"
        "both = lambda pool: {pool.apply(tool_b23.v), pool.apply(lambda: tool_b23.v())}\n"
        "results = lambda: set.union(*map(both, pools))\n"
        "assert results() == {'old'}"
    )
    fresh_kernel.run("%load_ext autoreload\n%autoreload 2")
    for text in ("newer", "newest"):
        fresh_kernel.run(f"write({text!r})")
        fresh_kernel.run(f"assert tool_b23.v() == {text!r} and results() == {{{text!r}}}, results()")
    fresh_kernel.run("for pool in pools: pool.terminate()")
