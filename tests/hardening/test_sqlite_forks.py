"""Forks while another thread is in SQLite, as IPython's is that writes the history."""

from __future__ import annotations

import _sqlite3
import contextlib
import ctypes
import sqlite3
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import nbmp
from nbmp.launching import sqlite

SECONDS = 60.0
LOCKS = (2, 3, 5, 6, 7, 11)
"""Those of SQLite's locks for all connections that it uses itself."""


def _library() -> Any:
    library = ctypes.CDLL(_sqlite3.__file__)
    library.sqlite3_mutex_alloc.restype = ctypes.c_void_p
    library.sqlite3_mutex_enter.argtypes = library.sqlite3_mutex_leave.argtypes = [ctypes.c_void_p]
    return library


@contextlib.contextmanager
def a_thread_is_in_sqlite() -> Iterator[None]:
    """Have a thread that holds all its locks."""
    library = _library()
    locks = [library.sqlite3_mutex_alloc(number) for number in LOCKS]
    held, over = threading.Event(), threading.Event()

    def hold() -> None:
        for lock in locks:
            library.sqlite3_mutex_enter(lock)
        held.set()
        over.wait()
        for lock in locks:
            library.sqlite3_mutex_leave(lock)

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    try:
        yield
    finally:
        over.set()
        thread.join()


def remember(rank: int, path: Path) -> list[tuple[int]]:
    """Write to a database and read it."""
    with contextlib.closing(sqlite3.connect(f"{path}{rank}")) as base:
        base.execute("create table numbers (number integer)")
        base.executemany("insert into numbers values (?)", [(number,) for number in range(3)])
        base.commit()
        return base.execute("select number from numbers order by random()").fetchall()


def by_launch(path: Path) -> list[tuple[int]]:
    (rows,) = nbmp.launch(remember, (path,), 1, start_method="fork", timeout=SECONDS)
    return rows  # type: ignore[no-any-return]


def by_process(path: Path) -> list[tuple[int]]:
    context = nbmp.get_context("fork")
    q = context.SimpleQueue()
    process = context.Process(target=lambda: q.put(remember(0, path)))
    process.start()
    process.join(SECONDS)
    try:
        assert process.exitcode == 0
    finally:
        process.kill()
    return q.get()  # type: ignore[no-any-return]


def by_pool(path: Path) -> list[tuple[int]]:
    with nbmp.get_context("fork").Pool(1) as pool:
        return pool.apply_async(remember, (0, path)).get(SECONDS)  # type: ignore[no-any-return]


@pytest.mark.parametrize("way", [by_launch, by_process, by_pool])
def test_sqlite_works_in_a_rank_when_a_thread_of_the_launching_process_holds_its_locks(
    way: Callable[[Path], list[tuple[int]]], tmp_path: Path
) -> None:
    with a_thread_is_in_sqlite():
        assert sorted(way(tmp_path / "base")) == [(0,), (1,), (2,)]
    assert len(remember(1, tmp_path / "base")) == 3  # and here


def write(rank: int, path: Path) -> int:
    with contextlib.closing(sqlite3.connect(path)) as base:
        base.execute("insert into numbers values (?)", (rank,))
        base.commit()
        return base.execute("select count(*) from numbers").fetchone()[0]  # type: ignore[no-any-return]


@pytest.mark.parametrize("mode", ["delete", "wal"])
def test_rank_opens_the_file_that_the_launching_process_has_open(mode: str, tmp_path: Path) -> None:
    path = tmp_path / "base"
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as base:
        base.execute(f"pragma journal_mode={mode}")
        base.execute("create table numbers (number integer)")
        base.execute("insert into numbers values (7)")
        with a_thread_is_in_sqlite():
            assert nbmp.launch(write, (path,), 1, start_method="fork", timeout=SECONDS) == [2]
        assert base.execute("select count(*) from numbers").fetchone() == (2,)
        assert base.execute("pragma integrity_check").fetchone() == ("ok",)


class Without:
    """Stands for a `_sqlite3` of some kind."""

    def __init__(self, **attributes: object) -> None:
        vars(self).update(attributes)


@pytest.mark.parametrize(
    "module",
    [
        None,
        Without(),
        Without(sqlite_version="3.7.17", __file__=_sqlite3.__file__),
        Without(sqlite_version="3.40.1", __file__="/dev/null"),
        Without(sqlite_version="3.40.1", __file__=ctypes.__file__),
    ],
    ids=["not imported", "half imported", "too old", "no library", "not the library"],
)
def test_fork_goes_on_without_a_sqlite_that_it_knows(module: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "_sqlite3", module)
    assert sqlite._functions() is None
    assert nbmp.launch(abs, nprocs=1, start_method="fork", timeout=SECONDS) == [0]
