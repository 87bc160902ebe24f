"""B05 and B38, what users of CuPy report: in a kernel, on a GPU, as they wrote it; elsewhere on the stand-in."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import fakecuda, scripts
from tests.cuda import standin

INITIALISED = """
import os, sys, time
import nbmp as mp
def kids():
    return open(f'/proc/self/task/{os.getpid()}/children').read().split()
"""
MUST_RAISE = """
def r(rank):
    USE
mp.start_processes(r, nprocs=2)          # default method: works
choice = mp.default_start_method()
assert choice.method in ('forkserver', 'spawn') and 'CUDA' in choice.reason and 'CuPy' in choice.reason, choice
k0 = set(kids())
try:
    mp.start_processes(r, nprocs=2, start_method='fork')
except RuntimeError as error:
    assert 'spawn' in str(error) and 'CUDA' in str(error) and 'CuPy' in str(error), error
else:
    raise AssertionError('nothing raised')
assert set(kids()) <= k0                 # nothing was started
"""
B38 = """
import os, sys
import numpy as np
import nbmp as mp
BEGIN
def echo(rank, qi, qo):
    PREPARE
    for _ in range(4):
        x = qi.get(timeout=60)
        qo.put((int(look(x).sum()) if x.size else 0, x.shape, int(x.data.device_id)))
        del x
qi, qo = mp.Queue(), mp.Queue()
ctx = mp.spawn(echo, args=(qi, qo), nprocs=1, join=False)
for x in (a, b, b[3:8:2], a[:0]):
    qi.put(x)
    assert qo.get(timeout=60) == (int(look(x).sum()) if x.size else 0, x.shape, int(x.data.device_id))
assert ctx.join(timeout=60)
q = mp.Queue()
q.put(a)
c = q.get(timeout=20)
assert (look(c) == look(a)).all() and c.data.mem is a.data.mem  # same process
"""


def run(folder: Path, *cells: str) -> None:
    pytest.importorskip("jupyter_client")
    from tests.notebook.conftest import start

    kernel = start(folder)
    try:
        for cell in cells:
            kernel.run(cell)
    finally:
        kernel.close()
        assert not kernel.left_behind()


@fakecuda.NEEDS_COMPILER
@pytest.mark.may_keep("descriptors")  # jupyter_client keeps an event loop in this process
def test_b05_gpu_library_is_initialised_already(tmp_path: Path) -> None:
    driver = fakecuda.build(tmp_path)
    touch = f"import cupy, ctypes\nctypes.CDLL({str(driver)!r}).cuInit(0)"
    run(tmp_path, INITIALISED, touch, MUST_RAISE.replace("USE", touch.replace("\n", "; ")))


@pytest.mark.gpu
@pytest.mark.may_keep("descriptors")
def test_b05_on_a_gpu(tmp_path: Path) -> None:
    touch = "import cupy as cp; cp.arange(3).sum()"
    run(
        tmp_path,
        INITIALISED,
        touch,
        MUST_RAISE.replace("USE", "import cupy as cp; assert int(cp.arange(4).sum()) == 6"),
    )


def test_import_of_nbmp_and_its_monitor_initialise_nothing(tmp_path: Path) -> None:
    source = """
        import sys
        import nbmp, nbmp.cuda
        nbmp.default_start_method(); nbmp.memory_usage(); nbmp.status()
        assert "libcuda" not in open("/proc/self/maps").read()
        assert not {"cupy", "nbmp.cuda.driver"} & set(sys.modules)
    """
    scripts.output(tmp_path, source)


@pytest.mark.may_keep("descriptors")
def test_b38_right_handle_right_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "machine"
    folder.mkdir()
    monkeypatch.setenv(standin.FOLDER, str(folder))
    begin = """
from tests.cuda.machine import look, neighbours
a, b = neighbours(np.arange(10, dtype='i4'), np.arange(10, 20, dtype='i4'))   # neighbours in one block
"""
    run(tmp_path, B38.replace("BEGIN", begin).replace("PREPARE", "from tests.cuda.machine import look"))
    assert not (folder / "noted-violations").exists()


@pytest.mark.gpu
@pytest.mark.may_keep("descriptors")
def test_b38_on_a_gpu(tmp_path: Path) -> None:
    begin = """
import cupy as cp
look = cp.asnumpy
a, b = cp.arange(10, dtype='i4'), cp.arange(10, 20, dtype='i4')       # neighbours in one pool block
"""
    run(tmp_path, B38.replace("BEGIN", begin).replace("PREPARE", "import cupy as cp"))
