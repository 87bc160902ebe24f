"""Where ranks are, asked while garbage would be collected."""

from __future__ import annotations

import gc
import linecache
import sys
import threading
from pathlib import Path

from tests.launching import functions
from tests.waiting import content, tell


def count_collections_in_answers(rank: int, folder: str) -> tuple[int, bool]:
    found: list[str] = []

    def note(phase: str, info: object) -> None:
        caller = sys._getframe(1)
        line = linecache.getline(caller.f_code.co_filename, caller.f_lineno)
        if "sys._current_frames()" in line:
            found.append(line)

    over = threading.Event()
    threads = [threading.Thread(target=over.wait) for _ in range(5)]
    for thread in threads:
        thread.start()
    gc.callbacks.append(note)
    gc.set_threshold(1)
    tell(f"{folder}/there", "now")
    functions.wait_for(rank, f"{folder}/go")
    over.set()
    for thread in threads:
        thread.join()
    return len(found), gc.isenabled()


def test_no_garbage_is_collected_while_a_rank_looks_at_its_threads(method: str, tmp_path: Path) -> None:
    """In Python 3.11 other threads may run in the middle of that, and end their frames."""
    context = functions.begin(count_collections_in_answers, (str(tmp_path),), 1, method)
    content(tmp_path / "there")
    for _ in range(3):
        assert context.stacks(timeout=30)[0].main
    tell(tmp_path / "go", "now")
    assert context.join()
    assert context.results == [(0, True)]
