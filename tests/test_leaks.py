"""The leak check notices what it is there for, and waits for what is just ending."""

from __future__ import annotations

import gc
import os
import select
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import nbmp
from tests import leaks
from tests.leaks import Holdings, leftovers

SLEEP = [sys.executable, "-c", "import time; time.sleep(60)"]


@pytest.fixture
def before() -> Holdings:
    return Holdings.now()


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(SLEEP) as process:
        yield process
        process.kill()


def test_live_child_is_reported_by_pid_and_command(before: Holdings, sleeper: subprocess.Popen[bytes]) -> None:
    (line,) = leftovers(before, ["children"], patience=0)
    assert f"pid {sleeper.pid} " in line
    assert "time.sleep(60)" in line


def test_grandchild_is_reported_too(before: Holdings) -> None:
    code = f"import subprocess as s; p = s.Popen({SLEEP}); print(p.pid, flush=True); input(); p.kill(); p.wait()"
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


def test_helper_is_no_leak_but_what_it_forked_is() -> None:
    server = f"python -c import nbmp; {leaks.HELPER_COMMANDS[0]}; serve(5)"
    assert leaks.is_helper(server, "python -m ipykernel_launcher")
    assert not leaks.is_helper(server, server)
    assert not leaks.is_helper("python script.py", server)


def test_descriptor_that_leads_to_a_helper_is_no_leak(before: Holdings, monkeypatch: pytest.MonkeyPatch) -> None:
    descriptor = os.memfd_create("helper")
    monkeypatch.setattr(leaks, "HELPER_DESCRIPTORS", [*leaks.HELPER_DESCRIPTORS, lambda: {descriptor}])
    assert leftovers(before, ["descriptors"], patience=0) == []
    os.close(descriptor)


def test_memory_of_the_standard_librarys_values_is_no_leak_but_what_was_made_to_send_it_is(before: Holdings) -> None:
    values = [nbmp.Array("d", 1 << 20, lock=False) for _ in range(2)]  # too large for one file
    assert leftovers(before, ["descriptors"], patience=0) == []
    arena = values[1]._wrapper._state[0][0]
    descriptor = os.dup(arena.fd)
    (line,) = leftovers(before, ["descriptors"], patience=0)
    assert f"/dev/shm/pym-{os.getpid()}-" in line
    os.close(descriptor)


def wait_for(rank: int, path: Path) -> int:
    while not path.exists():
        time.sleep(0.01)
    return rank


@pytest.mark.parametrize("start_method", ["fork", "forkserver", "spawn"])
def test_living_rank_is_a_leak_and_the_fork_server_is_not(before: Holdings, tmp_path: Path, start_method: str) -> None:
    context = nbmp.start_processes(wait_for, (tmp_path / "go",), join=False, start_method=start_method)
    assert context is not None
    try:
        (line,) = leftovers(before, ["children"], patience=0)
        assert f"pid {context.pids()[0]} " in line
    finally:
        (tmp_path / "go").touch()
    assert context.join()
    del context
    assert leftovers(before) == []


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
