"""What is measured of ranks: shared memory that is mapped, GPU memory."""

from __future__ import annotations

import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nbmp
from nbmp.monitoring import Sampler, gpus
from nbmp.platforms.mapped import shared_bytes

MB = 1_000_000


def hold(rank: int, array: Any, ready: Any, go: Any) -> None:
    array[rank] = rank
    ready.release()
    go.wait(60)


def test_shared_bytes_are_those_of_arrays_that_a_rank_has_mapped() -> None:
    array = nbmp.zeros(4 * MB)
    ready, go = nbmp.Semaphore(0), nbmp.Event()
    context = nbmp.start_processes(hold, (array, ready, go), nprocs=2, join=False, start_method="forkserver")
    assert context is not None
    try:
        for _ in range(2):
            assert ready.acquire(timeout=60)
        found = [shared_bytes(pid or 0) for pid in context.pids()]
    finally:
        go.set()
        context.join()
    assert all(32 * MB <= size < 40 * MB for size in found)
    del array


def test_a_mapping_that_is_there_twice_counts_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    maps = (
        "7f0000000000-7f0000010000 rw-s 00000000 00:01 17     /memfd:nbmp-1-array (deleted)\n"
        "7f0000020000-7f0000030000 rw-s 00010000 00:01 17     /memfd:nbmp-1-array (deleted)\n"
        "7f0000040000-7f0000041000 rw-s 00000000 00:01 18     /memfd:nbmp-1-board (deleted)\n"
        "7f0000050000-7f0000060000 r-xp 00000000 08:01 19     /usr/lib/nbmp-1-array.so\n"
        "7f0000060000-7f0000061000 rw-s 00000000 00:1a 20     /dev/shm/nbmp-0-abc/1-message-x\n"
    )
    (tmp_path / "maps").write_text(maps)
    opened = open
    monkeypatch.setattr("builtins.open", lambda path, mode: opened(tmp_path / "maps", mode))
    assert shared_bytes(1) == 0x20000 + 0x1000


def test_gpu_memory_is_asked_of_the_driver_if_its_package_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    library: Any = types.ModuleType("pynvml")
    processes = [types.SimpleNamespace(pid=7, usedGpuMemory=3), types.SimpleNamespace(pid=8, usedGpuMemory=None)]
    library.nvmlInit = lambda: None
    library.nvmlDeviceGetCount = lambda: 2
    library.nvmlDeviceGetHandleByIndex = lambda number: number
    library.nvmlDeviceGetComputeRunningProcesses = lambda device: processes
    library.NVMLError = type("NVMLError", (Exception,), {})
    monkeypatch.setitem(sys.modules, "pynvml", library)
    monkeypatch.setattr(gpus, "DEVICE", "/dev/null")
    gpus._library.cache_clear()
    try:
        assert gpus.memory_by_process() == {7: 6, 8: 0}
    finally:
        gpus._library.cache_clear()


def test_without_a_gpu_nothing_is_imported_or_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpus, "DEVICE", "/dev/no-such-device")
    monkeypatch.setitem(sys.modules, "pynvml", None)
    gpus._library.cache_clear()
    assert gpus.memory_by_process() == {}


def speak(rank: int) -> None:
    for step in nbmp.progress(range(30)):
        print("step", step)
    np.zeros(1)


def test_a_snapshot_has_progress_lines_and_the_last_of_them() -> None:
    context = nbmp.start_processes(speak, nprocs=2, join=False)
    assert context is not None
    context.join()
    context.finished.wait(20)
    for rank in Sampler(context).snapshot().ranks:
        assert rank.progress is not None
        assert (rank.progress.n, rank.progress.total) == (30, 30)
        assert rank.lines == 30
        assert rank.tail[-1] == "step 29"
        assert len(rank.tail) == 12
