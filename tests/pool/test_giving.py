"""Tasks that were given ahead and taken back, functions that a worker has: every result is that of its own task."""

from __future__ import annotations

import threading
import time
from functools import partial
from pathlib import Path
from typing import Any

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


def wait_at(item: int, at: int, path: str) -> int:
    """Return `item`; at one of them after it was told to go on."""
    if item == at:
        note_and_wait(path)
    return item


def test_quick_tasks_that_were_given_behind_a_long_one_are_done_by_others(pool: Pool, tmp_path: Path) -> None:
    pool.map(abs, range(300), chunksize=1)  # from now on many are given ahead
    busy = partial(wait_at, at=150, path=str(tmp_path))
    assert_is_waited_for_alone(pool, busy, 150, tmp_path)


def test_tasks_behind_a_long_one_of_a_worker_that_is_to_leave_are_done_by_others(tmp_path: Path) -> None:
    with Pool(2, maxtasksperchild=40) as pool:
        assert_is_waited_for_alone(pool, partial(wait_at, at=25, path=str(tmp_path)), 25, tmp_path)


def assert_is_waited_for_alone(pool: Pool, function: Any, at: int, path: Path) -> None:
    results = pool.imap_unordered(function, range(600))
    assert sorted(results.next(20) for _ in range(599)) == [x for x in range(600) if x != at]
    tell(path / "go on", "")
    assert results.next(20) == at


class OpenedAt:
    """What becomes a text when a file is there that says so."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return note_and_wait, (self.path,)


@pytest.mark.parametrize("of_the_user", ["callback", "unpickling"])
def test_a_result_is_told_before_code_of_the_users_runs_for_the_next_one(of_the_user: str, tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    second.mkdir()
    over: list[object] = []
    with Pool(1) as pool:
        pool.map(abs, range(300), chunksize=1)  # from now on many are given ahead
        pool.apply_async(note_and_wait, (str(first),), callback=lambda _: until((second / "begun").exists, 0.3))
        told = pool.apply_async(abs, (-1,))
        if of_the_user == "callback":
            pool.apply_async(abs, (-2,), callback=lambda _: over.append(note_and_wait(str(second))))
        else:
            pool.apply_async(OpenedAt, (str(second),), callback=over.append)
        later = threading.Timer(0.2, tell, (first / "go on", ""))  # when the result is waited for already
        later.start()  # all three outcomes are there when the first callback returns
        assert told.get() == 1
        assert not over
        later.join()
        tell(second / "go on", "")
        pool.close()
        pool.join()
    assert over == ["waited"]


def test_functions_are_told_apart_however_many_there_were(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with Pool(1, start_method=method) as pool:
        for start in (255, 511):  # the second function is just as many further on as fit into a byte
            monkeypatch.setattr(tasks, "_numbers", iter(range(start, start + 1)))
            function = functions.square if start == 255 else abs
            assert pool.map(function, [-3]) == [9 if start == 255 else 3]
        pool.terminate()
        pool.join()
