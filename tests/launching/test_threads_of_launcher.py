"""Launches from threads of the launching process."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import nbmp
from tests.launching import functions
from tests.waiting import content, is_running, tell


def test_ranks_live_on_when_the_thread_that_started_them_has_ended(method: str, tmp_path: Path) -> None:
    started: list[nbmp.ProcessContext] = []
    arguments = (functions.stay_then_wait, (str(tmp_path),), 2, method)
    thread = threading.Thread(target=lambda: started.append(functions.begin(*arguments)))
    thread.start()
    thread.join()
    (context,) = started
    pids = [int(content(tmp_path / f"pid{rank}")) for rank in range(2)]
    assert context.join(0.5) is False  # a parent-death signal would have struck by now
    assert all(map(is_running, pids))
    tell(tmp_path / "go", "now")
    assert context.join()
    assert context.results == [0, 1]


def test_several_threads_launch_at_once(method: str) -> None:
    def launch(number: int) -> list[object]:
        return nbmp.launch(functions.give, (number,), 2, start_method=method)

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(launch, range(8))) == [[number, number] for number in range(8)]
