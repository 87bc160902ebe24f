"""Tasks that were given ahead and taken back, functions that a worker has: every result is that of its own task."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from nbmp.pool import Pool
from nbmp.pools import tasks
from tests.pool import functions
from tests.waiting import tell, until


def note_and_wait(path: str) -> str:
    """Note that it was begun, and wait until told to go on."""
    with open(f"{path}/begun", "a") as file:
        file.write("x")
    until(lambda: Path(f"{path}/go on").exists())
    return "waited"


def square_slowly(x: int) -> int:
    time.sleep(0.005)
    return x * x


def test_a_busy_workers_tasks_are_taken_back_again_and_again(pool: Pool, tmp_path: Path) -> None:
    busy = pool.map_async(note_and_wait, [str(tmp_path)])
    assert until(lambda: (tmp_path / "begun").exists())
    # One of them is given ahead to the busy worker, and taken back after a while; and so on.
    assert pool.map(square_slowly, range(200), chunksize=1) == [x * x for x in range(200)]
    tell(tmp_path / "go on", "")
    assert busy.get(20) == ["waited"]
    assert (tmp_path / "begun").read_text() == "x"


def test_functions_are_told_apart_however_many_there_were(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with Pool(1, start_method=method) as pool:
        for start in (255, 511):  # the second function is just as many further on as fit into a byte
            monkeypatch.setattr(tasks, "_numbers", iter(range(start, start + 1)))
            function = functions.square if start == 255 else abs
            assert pool.map(function, [-3]) == [9 if start == 255 else 3]
        pool.terminate()
        pool.join()
