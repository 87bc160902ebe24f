"""The leak check notices what it is there for, and waits for what is just ending."""

from __future__ import annotations

import gc
import os
import select
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import leaks
from tests.leaks import Helper, Holdings, leftovers

SLEEP = [sys.executable, "-c", "import time; time.sleep(60)"]


@pytest.fixture
def before() -> Holdings:
    return Holdings.now()


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(SLEEP) as process:
        yield process
        process.kill()


def test_live_child_is_reported_by_pid_and_command(
    before: Holdings, sleeper: subprocess.Popen[bytes]
) -> None:
    (line,) = leftovers(before, ["children"], patience=0)
    assert f"pid {sleeper.pid} " in line
    assert "time.sleep(60)" in line


def test_grandchild_is_reported_too(before: Holdings) -> None:
    code = (
        f"import subprocess as s; p = s.Popen({SLEEP}); print(p.pid, flush=True); input(); p.kill(); p.wait()"
    )
    command = [sys.executable, "-c", code]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        grandchild = int(parent.stdout.readline())
        assert any(f"pid {grandchild} " in line for line in leftovers(before, ["children"], patience=0))
        parent.communicate("now end\n")


def test_child_that_is_ending_is_waited_for(before: Holdings) -> None:
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(0.3)"]):
        assert Holdings.now().beyond(before, ["children"])
        assert leftovers(before, ["children"]) == []


def test_helper_and_its_children_are_no_leak(
    before: Holdings, sleeper: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    read_end, write_end = os.pipe()
    mine = Helper(frozenset({sleeper.pid}), frozenset({read_end, write_end}))
    monkeypatch.setattr(leaks, "HELPERS", [*leaks.HELPERS, lambda: mine])
    assert leftovers(before, patience=0) == []
    os.close(read_end)
    os.close(write_end)


def test_open_descriptor_is_reported_with_its_target(before: Holdings, tmp_path: Path) -> None:
    with (tmp_path / "kept-open").open("w"):
        (line,) = leftovers(before, ["descriptors"], patience=0)
        assert line.endswith("kept-open")


def test_descriptor_kept_by_a_cycle_is_collected(before: Holdings) -> None:
    cycle: list[object] = [select.epoll()]  # closes its descriptor when it is deallocated
    cycle.append(cycle)
    gc.disable()
    try:
        del cycle
        assert Holdings.now().beyond(before, ["descriptors"])
        assert leftovers(before, ["descriptors"]) == []
    finally:
        gc.enable()


def test_name_in_shared_memory_folder_is_reported(before: Holdings) -> None:
    path = leaks.SHM / f"nbmp-leak-check-{os.getpid()}"
    path.touch()
    try:
        assert leftovers(before, ["names"], patience=0) == [f"names: {path.name}"]
    finally:
        path.unlink()


def test_only_threads_of_nbmp_are_reported(before: Holdings) -> None:
    done = threading.Event()
    threads = [threading.Thread(target=done.wait, name=name) for name in ("nbmp-reader", "somebody")]
    for thread in threads:
        thread.start()
    assert leftovers(before, ["threads"], patience=0) == ["threads: nbmp-reader"]
    done.set()
    for thread in threads:
        thread.join()
