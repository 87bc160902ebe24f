"""Machines without CuPy, or without a driver: everything else works, and asking says what to install."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import scripts
from tests.conftest import why_no_gpu

EVERYTHING = """
    import sys
    HIDE
    import numpy as np
    import nbmp
    import nbmp.cuda

    def double(rank, array):
        return 2 * array

    queue = nbmp.Queue()
    queue.put([nbmp.share_memory(np.ones(3)), np.zeros(100_000)])
    assert queue.get()[0].sum() == 3
    for method in ("fork", "forkserver", "spawn"):
        assert nbmp.launch(double, (np.ones(2),), start_method=method)[0].sum() == 4
    assert nbmp.share_memory(np.ones(3)) is not None and nbmp.is_shared("no array") is False
    with nbmp.Pool(1) as pool:
        assert pool.map(abs, [-1]) == [1]
    for ask in (nbmp.cuda.memory_usage, nbmp.cuda.ipc_collect):
        try:
            ask()
        except Exception as error:
            print(type(error).__name__, "|", error)
    MORE
"""


def test_without_cupy_all_else_works_and_asking_says_what_to_install(tmp_path: Path) -> None:
    script = EVERYTHING.replace("HIDE", "sys.modules['cupy'] = None  # as if it were not installed").replace("MORE", "")
    for line in scripts.output(tmp_path, script).splitlines():
        assert line.startswith("ModuleNotFoundError | CuPy")
        assert "pip install cupy-cuda12x" in line


def test_array_that_reaches_a_process_without_cupy_says_what_to_install(tmp_path: Path) -> None:
    more = """try:
        import pickle
        pickle.loads(b"cnbmp.cuda.arriving\\narray\\n.")
    except ModuleNotFoundError as error:
        print(error)"""
    script = EVERYTHING.replace("HIDE", "sys.modules['cupy'] = None").replace("MORE", more)
    assert "pip install cupy-cuda12x" in scripts.output(tmp_path, script).splitlines()[-1]


@pytest.mark.skipif(why_no_gpu() is None, reason="there is a GPU here")
def test_without_a_driver_all_else_works_and_asking_says_what_to_install(tmp_path: Path) -> None:
    pytest.importorskip("cupy")
    more = """assert nbmp.default_start_method().method == "fork" """
    script = EVERYTHING.replace("HIDE", "import cupy").replace("MORE", more)
    for line in scripts.output(tmp_path, script).splitlines():
        assert line.startswith("DeviceError | no CUDA here")
        assert "install NVIDIA's driver" in line


def test_nothing_of_nbmp_loads_cupy_by_itself(tmp_path: Path) -> None:
    script = EVERYTHING.replace("HIDE", "").replace(
        "for ask in (nbmp.cuda.memory_usage, nbmp.cuda.ipc_collect)", "for ask in ()"
    )
    assert scripts.output(tmp_path, script.replace("MORE", "print('cupy' in sys.modules)")) == "False\n"
