"""What a cell in ranks does not cost: counted, since times depend on the machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.notebook.kernels import Kernel

pytestmark = pytest.mark.may_keep("children")  # the module's kernel, which keeps a fork server

TASKS = "import os, threading\ndef tasks(): return set(map(int, os.listdir('/proc/self/task')))"
LOADED = "import sys\nloaded = set(sys.modules)"
SHOWN = """
from nbmp.launching import libraries
pools = [library for library in libraries._loaded().lib_controllers if libraries.is_pooled(library)]
all(libraries._write(library, library.num_threads) for library in pools)
"""


def test_a_forked_rank_imports_nothing_of_ours(kernel: Kernel) -> None:
    kernel.run("%%mpspawn -n 2 --start-method fork\nprint(rank)")  # what a launch needs is loaded now
    kernel.run(LOADED)
    cell = kernel.run("%%mpspawn -n 2 --start-method fork\nprint(rank)\nset(sys.modules) - loaded")
    assert cell.value == "[set(), set()]"


def test_a_rank_of_the_fork_server_imports_nothing_of_ours(fresh_kernel: Kernel) -> None:
    Path(fresh_kernel.folder, "noted.py").write_text(f"{LOADED}\nimport os\nserver = os.getpid()")
    fresh_kernel.run("%load_ext nbmp\nimport nbmp, os\nos.environ['PYTHONPATH'] += f':{os.getcwd()}'")
    fresh_kernel.run("nbmp.set_forkserver_preload(['noted'])")
    body = "import noted, os, sys\nset(sys.modules) - noted.loaded, noted.server == os.getppid()"
    cell = fresh_kernel.run(f"%%mpspawn -n 1 --start-method forkserver\n{body}")
    assert cell.value == "[(set(), True)]"


def test_a_new_interpreter_loads_no_large_module_that_a_body_does_not_need(kernel: Kernel) -> None:
    body = "import sys\n{'asyncio', 'ctypes', 'hashlib', 'numpy', 'ssl'} & set(sys.modules)"
    assert kernel.run(f"%%mpspawn -n 1 --start-method spawn\n{body}").value == "[set()]"


def test_no_library_starts_threads_for_a_launch(kernel: Kernel) -> None:
    kernel.run(f"{TASKS}\nimport numpy\ngo = threading.Event()\nuser = threading.Thread(target=go.wait)\nuser.start()")
    if kernel.run(SHOWN).value != "True":
        kernel.run("go.set(); user.join()")
        pytest.skip("OpenBLAS hides the variable with its number of threads, as in NumPy's wheels from 2.5 on")
    kernel.run("before = tasks()")
    cell = kernel.run("%%mpspawn -n 2 --start-method fork\nlen(tasks())")
    assert cell.value == "[1, 1]"
    assert kernel.run("tasks() - before - {thread.native_id for thread in threading.enumerate()}").value == "set()"
    kernel.run("go.set(); user.join()")


def test_threads_of_the_kernel_are_not_waited_for(kernel: Kernel) -> None:
    kernel.run("import threading, numpy\nfrom nbmp.launching.threads import others_may_compute")
    assert kernel.run("others_may_compute()").value == "False"
    kernel.run("go = threading.Event()\nuser = threading.Thread(target=go.wait)\nuser.start()")
    assert kernel.run("others_may_compute()").value == "True"
    kernel.run("go.set(); user.join()")
