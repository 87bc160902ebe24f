"""The manager of named segments: whatever dies, memory comes back, and no message is lost."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

import nbmp
from nbmp.memory import manager, session
from nbmp.memory.session import own_session
from tests import scripts
from tests.strategies import ONLY_BY_NAME
from tests.waiting import content, is_running, until

pytestmark = ONLY_BY_NAME

BIG = 100_000
SHM = Path("/dev/shm")
SOON = 20.0
"""Seconds for what takes about one: tells a hang from an end."""


def segments(folder: str | None = None) -> list[str]:
    """Return the names in a session's folder, this process' own by default, that stand for memory."""
    found = os.listdir(SHM / (folder or own_session().name))
    return sorted(name for name in found if name[0].isdigit())


def managers(folder: str | None = None) -> list[int]:
    """Return the pids of the managers of a session."""
    path = str(SHM / (folder or own_session().name))
    running = [process.info for process in psutil.process_iter(["pid", "cmdline"])]
    return [info["pid"] for info in running if (info["cmdline"] or [""])[-1] == path and is_running(info["pid"])]


def the_manager(folder: str | None = None) -> int:
    """Return the pid of the manager, as soon as it has the sign of it."""
    path = SHM / (folder or own_session().name) / manager.SIGN

    def has_one() -> bool:
        with path.open("r+b") as file:
            return manager.is_locked(file.fileno(), 0, 1)

    assert until(has_one, SOON)
    assert until(lambda: len(managers(folder)) == 1, SOON)
    return managers(folder)[0]


@pytest.fixture
def stopped() -> Iterator[int]:
    """A manager that is stopped, for good."""
    array = nbmp.zeros(BIG)
    pid = the_manager()
    os.kill(pid, signal.SIGSTOP)
    yield pid
    os.kill(pid, signal.SIGKILL)
    del array


def test_it_is_nobodys_child_and_has_a_session_of_its_own() -> None:
    array = nbmp.zeros(BIG)
    process = psutil.Process(the_manager())
    assert process.pid not in [child.pid for child in psutil.Process().children(recursive=True)]
    assert os.getsid(process.pid) != os.getsid(0)
    opened = {os.readlink(path) for path in Path(f"/proc/{process.pid}/fd").iterdir()}
    folder = str(SHM / own_session().name)
    assert {path for path in opened if not path.startswith("pipe:")} <= {"/dev/null", folder, f"{folder}/manager"}
    assert process.cwd() == "/"
    del array


def test_memory_that_nobody_uses_is_given_back() -> None:
    array = nbmp.zeros(BIG)
    names = segments()
    del array
    assert names
    assert until(lambda: not segments(), SOON)


def test_killed_one_is_replaced_and_nothing_is_lost() -> None:
    q = nbmp.Queue()
    array = nbmp.full(BIG, 5.0)
    q.put(array)
    first = the_manager()
    os.kill(first, signal.SIGKILL)
    assert until(lambda: not is_running(first), SOON)
    other = nbmp.zeros(BIG)
    assert the_manager() != first
    arrived = q.get(timeout=5)
    assert (arrived == 5).all()
    del array, other
    assert until(lambda: len(segments()) == 1, SOON)
    del arrived
    assert until(lambda: not segments(), SOON)


def test_stopped_one_blocks_nobody(stopped: int) -> None:
    q = nbmp.Queue()
    array = nbmp.zeros(BIG)
    for value in range(20):
        q.put((np.full(BIG, value), array))
        private, shared = q.get(timeout=5)
        assert private[0] == value
        assert np.shares_memory(shared, array)
    assert is_running(stopped)


def test_lock_of_a_stopped_one_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """It was stopped between taking the lock and finding out that a message carries the segment."""
    monkeypatch.setattr(session, "LOCK_SECONDS", 0.05)
    q, earlier = nbmp.Queue(), segments()
    q.put(np.full(BIG, 5.0))
    name = min(set(segments()).difference(earlier))
    path = SHM / own_session().name / name
    locking = "import fcntl, time; fcntl.flock(0, fcntl.LOCK_EX | fcntl.LOCK_NB); print(flush=True); time.sleep(100)"
    with (
        path.open("r+b") as file,
        subprocess.Popen([sys.executable, "-c", locking], stdin=file, stdout=subprocess.PIPE) as stopped,
    ):
        assert stopped.stdout is not None
        stopped.stdout.readline()
        array = q.get(timeout=5)
        own_session().sweep()
        assert array.sum() == 5 * BIG
        stopped.kill()
    assert array.sum() == 5 * BIG


def put_and_leave(rank: int, q: Any, how: str) -> None:
    q.put((np.full(BIG, 1.0), nbmp.full(BIG, 2.0)))
    if how == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    os._exit(0)


@pytest.mark.parametrize("how", ["left", "killed"])
def test_item_arrives_although_its_producer_is_gone(how: str) -> None:
    q = nbmp.Queue()
    context = nbmp.start_processes(put_and_leave, (q, how), join=False, start_method="fork")
    assert context is not None
    with contextlib.suppress(nbmp.ProcessExitedException):
        context.join(SOON)
    own_session().sweep()
    private, shared = q.get(timeout=5)
    assert private.sum() == BIG
    assert shared.sum() == 2 * BIG
    own_session().sweep()
    shared += 1
    assert shared.sum() == 3 * BIG
    del private, shared
    assert until(lambda: not segments(), SOON)


def hold(rank: int, q: Any, ready: Any) -> None:
    kept = q.get(timeout=SOON)
    ready.put(len(kept))
    signal.pause()


def test_memory_that_a_killed_consumer_held_is_given_back(method: str) -> None:
    q, ready = nbmp.Queue(), nbmp.Queue()
    context = nbmp.start_processes(hold, (q, ready), join=False, start_method=method)
    q.put([np.ones(BIG), nbmp.zeros(BIG)])
    assert ready.get(timeout=SOON) == 2
    assert segments()
    assert context is not None
    context.processes[0].kill()
    with pytest.raises(nbmp.ProcessExitedException):
        context.join(SOON)
    assert until(lambda: not segments(), SOON)


def test_messages_that_are_thrown_away_unread_give_their_memory_back() -> None:
    q = nbmp.Queue()
    for _ in range(20):
        q.put((np.zeros(BIG), nbmp.zeros(BIG)))
    assert len(segments()) == 80
    del q
    assert until(lambda: not segments(), SOON)


SESSION_OF_TWO = """
    import os, sys, time, nbmp, numpy as np
    nbmp.set_sharing_strategy("file_system")
    array = nbmp.zeros(100_000)
    q = nbmp.Queue()
    q.put(np.zeros(100_000))
    from nbmp.memory.session import own_session
    child = os.fork()
    if child:
        with open("told", "w") as file:
            file.write(f"{own_session().name} {os.getpid()} {child}")
    while True:
        time.sleep(1)
"""


def test_all_is_gone_soon_after_the_last_process_was_killed(tmp_path: Path) -> None:
    with scripts.started(tmp_path, SESSION_OF_TWO) as script:
        folder, *pids = content(tmp_path / "told").split()
        pid = the_manager(folder)
        os.kill(int(pids[0]), signal.SIGKILL)
        script.wait()
        assert is_running(pid)
        assert len(segments(folder)) >= 1
        os.kill(int(pids[1]), signal.SIGKILL)
        assert until(lambda: not (SHM / folder).exists(), SOON)
        assert until(lambda: not is_running(pid), SOON)


def test_what_a_killed_session_left_is_removed_by_the_next_one(tmp_path: Path) -> None:
    with scripts.started(tmp_path, SESSION_OF_TWO) as script:
        folder, *pids = content(tmp_path / "told").split()
        os.kill(the_manager(folder), signal.SIGKILL)
        for pid in pids:
            os.kill(int(pid), signal.SIGKILL)
        script.wait()
        assert segments(folder)
        new = "import nbmp; nbmp.set_sharing_strategy('file_system'); a = nbmp.zeros(3); import time; time.sleep({})"
        scripts.run(tmp_path, new.format(0))
        assert until(lambda: not (SHM / folder).exists(), SOON)


def test_only_one_of_many_that_race_remains() -> None:
    array = nbmp.zeros(BIG)
    os.kill(the_manager(), signal.SIGKILL)
    path = str(SHM / own_session().name)
    racing = [subprocess.Popen([sys.executable, "-I", "-S", manager.__file__, path]) for _ in range(5)]
    assert [process.wait(SOON) for process in racing] == [0] * 5
    the_manager()
    del array
    assert until(lambda: not segments(), SOON)


def test_rubbish_in_the_folder_is_left_alone_and_goes_with_it(tmp_path: Path) -> None:
    with scripts.started(tmp_path, SESSION_OF_TWO) as script:
        folder, *pids = content(tmp_path / "told").split()
        path = SHM / folder
        pid = the_manager(folder)
        (path / "notes.txt").write_text("not a segment")
        (path / "1-array-0123456789abcdef").mkdir()
        os.mkfifo(path / "2-array-0123456789abcdef")
        (path / "3-array-0123456789abcdef").symlink_to(tmp_path / "target")
        (path / "4-array-0123456789abcdef.zzzz").write_bytes(b"")
        (path / "folder").mkdir()
        (path / "folder" / "file").write_bytes(b"x")
        (tmp_path / "target").write_text("stays")
        (path / "5-array-0123456789abcdef").write_bytes(b"unused")
        assert until(lambda: not (path / "5-array-0123456789abcdef").exists(), SOON)
        assert (path / "notes.txt").exists()
        assert is_running(pid)
        for other in pids:
            os.kill(int(other), signal.SIGKILL)
        script.wait()
        assert until(lambda: not path.exists(), SOON)
        assert (tmp_path / "target").read_text() == "stays"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a folder that is another user's")
def test_folder_of_another_user_is_not_touched(tmp_path: Path) -> None:
    other = SHM / f"{manager.PREFIX}0-{os.getpid():x}f"
    link = SHM / f"{manager.PREFIX}0-{os.getpid():x}e"
    other.mkdir(0o777)
    (tmp_path / "precious").write_text("stays")
    link.symlink_to(tmp_path)
    try:
        os.chown(other, 65534, 65534)
        manager.remove_leftovers(str(SHM))
        assert other.exists()
        assert link.is_symlink()
        assert (tmp_path / "precious").exists()
    finally:
        other.rmdir()
        link.unlink()


def test_session_of_a_forked_child_goes_on_without_its_parent(tmp_path: Path) -> None:
    script = """
        import os, sys, nbmp
        nbmp.set_sharing_strategy("file_system")
        array = nbmp.zeros(100_000)
        q = nbmp.Queue()
        if os.fork():
            os._exit(0)
        import time
        time.sleep(1.5)
        q.put(array)
        q.get()[0] = 7
        other = nbmp.full(100_000, 2.0)
        q.put(other)
        with open("told", "w") as file:
            file.write(f"{array[0] + q.get()[0]}")
        """
    scripts.run(tmp_path, script)
    assert content(tmp_path / "told") == "9.0"
