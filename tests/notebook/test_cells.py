"""Launches from cells that people report as broken elsewhere: each works, or says one clear thing."""

from __future__ import annotations

import re

import pytest

from tests.notebook.kernels import Kernel

pytestmark = pytest.mark.may_keep("children")  # the module's kernel, which keeps a fork server


def test_a_function_of_an_earlier_cell_is_found_with_its_globals(kernel: Kernel, method: str) -> None:
    kernel.run("import math as m, nbmp\nSCALE = 3\ndef helper(x): return m.sqrt(x) * SCALE")
    kernel.run("def work(rank): return rank, helper(4 * rank)")
    cell = kernel.run(f"nbmp.launch(work, nprocs=2, start_method='{method}')")
    assert cell.value == "[(0, 0.0), (1, 6.0)]"


def test_ranks_that_swallow_the_interrupt_are_gone_and_the_next_launch_works(fresh_kernel: Kernel, method: str) -> None:
    fresh_kernel.run(
        "%load_ext nbmp\nimport nbmp, os, time, psutil\n"
        "def stubborn(rank):\n    print('pid', os.getpid())\n    end = time.time() + 60\n"
        "    while time.time() < end:\n        try: time.sleep(60)\n        except KeyboardInterrupt: pass"
    )
    cell = fresh_kernel.start(f"nbmp.start_processes(stubborn, nprocs=2, start_method='{method}')")
    fresh_kernel.until(lambda: cell.text().count("pid") == 2, "both ranks run")
    fresh_kernel.interrupt()
    fresh_kernel.until(lambda: bool(cell.ended), "the cell is done", 10)
    assert cell.of("error")[0].content["ename"] == "KeyboardInterrupt"
    pids = [int(line.split()[-1]) for line in cell.text().splitlines() if "pid" in line]
    assert fresh_kernel.run(f"[psutil.pid_exists(pid) for pid in {pids}]").value == "[False, False]"
    again = fresh_kernel.run(f"nbmp.launch(lambda rank: rank, nprocs=2, start_method='{method}')")
    assert again.value == "[0, 1]"


def test_what_cannot_travel_is_named_before_anything_starts(kernel: Kernel) -> None:
    kernel.run(
        "import nbmp, threading\n"
        "class Holder:\n    def __init__(self): self.w = 1; self.lock = threading.Lock()\n"
        "def r(rank, a, b): print('started')"
    )
    cell = kernel.run("nbmp.spawn(r, args=(1, Holder()), nprocs=3)", fails=True)
    assert "args[1].lock" in cell.error
    assert "started" not in cell.text()
    for bad in ("(i for i in range(3))", "threading.current_thread()"):
        assert "args[1]" in kernel.run(f"nbmp.spawn(r, args=(1, {bad}), nprocs=3)", fails=True).error


def test_the_error_of_a_launch_within_a_rank_calls_cells_by_their_numbers(kernel: Kernel) -> None:
    kernel.run("def deep(rank): raise RuntimeError('deep')")
    failed = kernel.run("%%mpspawn -n 1\nimport nbmp\nnbmp.launch(deep, nprocs=1)", fails=True)
    assert "caused by RuntimeError: deep" in failed.error
    assert re.search(r"Cell In\[\d+\], line 1, in deep", failed.error)
    assert "/ipykernel_" not in failed.error


def test_a_function_with_a_cache_travels_and_calls_itself(kernel: Kernel, method: str) -> None:
    kernel.run(f"""
import functools
import nbmp

@functools.lru_cache(maxsize=7)
def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)

def work(rank):
    return fib(20), fib.cache_parameters(), fib.__wrapped__.__globals__["fib"] is fib

assert nbmp.launch(work, nprocs=1, start_method={method!r}) == [(6765, {{"maxsize": 7, "typed": False}}, True)]
with nbmp.Pool(1, start_method={method!r}) as pool:
    assert pool.map(functools.cache(lambda x: x + 1), [1]) == [2]
    assert pool.map(functools.cache(len), ["ab"]) == [2]
""")


def test_exit_in_a_function_ends_the_rank(kernel: Kernel, method: str) -> None:
    kernel.run("import nbmp\ndef leaves(rank):\n    exit(0)")
    kernel.run(f"nbmp.start_processes(leaves, nprocs=2, start_method='{method}')")


def test_no_user_file_is_run_again_whatever_file_says(kernel: Kernel) -> None:
    kernel.run(
        "import nbmp, os\nif os.path.exists('ran.txt'): os.unlink('ran.txt')\n"
        "with open('side.py', 'w') as f:\n"
        '    f.write(\'open("ran.txt", "a").write("x")\\ndef from_run(rank): return rank\\n\')\n'
        "def ok(rank): pass\n"
        "for f in ('side.py', 'no_such_notebook.ipynb'):\n    __file__ = os.path.abspath(f)\n"
        "    nbmp.spawn(ok, nprocs=2)\n"
        "del __file__"
    )
    assert kernel.run("os.path.exists('ran.txt')").value == "False"
    kernel.run("%run side.py")
    assert kernel.run("nbmp.launch(from_run, nprocs=2, start_method='spawn')").value == "[0, 1]"
    assert kernel.run("open('ran.txt').read()").value == "'x'"


def test_the_pasted_main_guard_does_no_harm(kernel: Kernel, method: str) -> None:
    kernel.run("import nbmp\ndef ok(rank): return rank")
    cell = kernel.run(f"if __name__ == '__main__':\n    r = nbmp.launch(ok, nprocs=2, start_method='{method}')\nr")
    assert cell.value == "[0, 1]"
    cell = kernel.run(f"%%mpspawn -n 2 --start-method {method}\nif __name__ == '__main__':\n    print('main')")
    assert sorted(cell.text().splitlines()) == ["[0] main", "[1] main"]


def test_a_class_of_the_notebook_comes_back_as_that_class(kernel: Kernel, method: str) -> None:
    kernel.run("class Point:\n    def __init__(self, x): self.x = x")
    kernel.run(f"%%mpspawn -n 2 --start-method {method} --out points\nPoint(rank)")
    assert kernel.run("[isinstance(p, Point) and p.x for p in points]").value == "[0, 1]"


def test_matplotlib_figures_of_a_rank_are_shown(kernel: Kernel) -> None:
    pytest.importorskip("matplotlib")
    kernel.run("%matplotlib inline\nimport matplotlib.pyplot as plt")
    for method in ("fork", "spawn"):
        cell = kernel.run(f"%%mpspawn -n 2 --start-method {method}\nplt.plot([rank, 1]);")
        assert sum("image/png" in m.content["data"] for m in cell.of("display_data")) == 2


def test_run_by_nbclient_the_saved_notebook_has_the_last_form(fresh_kernel: Kernel) -> None:
    nbformat = pytest.importorskip("nbformat")
    pytest.importorskip("nbclient")
    source = ["%load_ext nbmp", "%%mpspawn -n 2\nimport time\ntime.sleep(0.5)\nprint('line')\nrank"]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(text) for text in source])
    cell = fresh_kernel.run(
        "import json, nbformat\nfrom nbclient import NotebookClient\n"
        f"nb = nbformat.reads({nbformat.writes(notebook)!r}, 4)\n"
        "await NotebookClient(nb, kernel_name='python3').async_execute()\n"
        "print(json.dumps(nb.cells[1].outputs))"
    )
    assert "2 done" in cell.text()
    assert "nbmp-ranks" in cell.text()
    assert "widget-view" not in cell.text()
