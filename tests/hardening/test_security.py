"""A second user of the machine, who tries to connect to, open, read and replace everything that there is."""

from __future__ import annotations

import json
import os
import shutil
import stat
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
from nbmp.memory.arrays import place_of
from nbmp.memory.weakly import WeakTable
from tests import scripts, unprivileged
from tests.waiting import content

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become a second user")

NOBODY = 65534
SHM = Path("/dev/shm")

VICTIM = """
    import json, os, sys, time, tempfile, nbmp, numpy as np
    from nbmp.launching.methods import forkserver

    def wait(rank):
        time.sleep(100)

    array = nbmp.full(100_000, 7.0)
    nbmp.set_sharing_strategy("file_system")
    from nbmp.memory.session import own_session
    named, q = nbmp.full(100_000, 7.0), nbmp.Queue()
    q.put((named, array, np.full(100_000, 7.0)))
    contexts = [nbmp.start_processes(wait, nprocs=1, join=False, start_method=method, daemon=True)
                for method in nbmp.get_all_start_methods()]
    pool = nbmp.Pool(1)
    values = nbmp.Manager()
    told = {
        "pids": [os.getpid(), forkserver.server_pid(), *(context.pids()[0] for context in contexts),
                 *pool.map(lambda _: os.getpid(), [0]), values._process.pid],
        "session": own_session().name,
        "socket": values.address,
    }
    with open("part", "w") as file: json.dump(told, file)
    os.rename("part", "told")
    time.sleep(100)
"""

ATTACK = """
    import glob, json, os, signal, socket, sys
    told = json.loads(sys.argv[1])
    succeeded = []

    def attempt(what, do, *args, **kwds):
        try:
            do(*args, **kwds)
        except (PermissionError, FileNotFoundError, ProcessLookupError):
            return
        except OSError as error:
            what = f"{what} ({error})"
        succeeded.append(what)

    for pid in told["pids"]:
        attempt(f"list descriptors of {pid}", os.listdir, f"/proc/{pid}/fd")
        attempt(f"list mappings of {pid}", os.listdir, f"/proc/{pid}/map_files")
        for file in ("mem", "environ", "maps", "fd/0", *(f"fd/{n}" for n in range(3, 60))):
            attempt(f"read {file} of {pid}", lambda: os.read(os.open(f"/proc/{pid}/{file}", os.O_RDONLY), 1))
            attempt(f"write {file} of {pid}", os.open, f"/proc/{pid}/{file}", os.O_RDWR)
        for number in (0, signal.SIGTERM, signal.SIGRTMAX - 7):
            attempt(f"signal {pid}", os.kill, pid, number)
    folder = f"/dev/shm/{told['session']}"
    attempt("list the folder", os.listdir, folder)
    attempt("rename the folder", os.rename, folder, folder + "0")
    attempt("remove the folder", os.rmdir, folder)
    attempt("open the folder", os.open, folder, os.O_RDONLY)
    attempt("make a file", os.open, folder + "/mine", os.O_CREAT | os.O_RDWR)
    for name in told["files"]:
        for flags in (os.O_RDONLY, os.O_RDWR, os.O_PATH):
            attempt(f"open {name}", os.open, f"{folder}/{name}", flags)
        attempt(f"remove {name}", os.unlink, f"{folder}/{name}")
        attempt(f"link {name}", os.link, f"{folder}/{name}", f"/dev/shm/nbmp-stolen-{os.getpid()}")
    for address in told["sockets"]:
        attempt(f"connect to {address}", socket.socket(socket.AF_UNIX).connect, address)
    print(json.dumps(succeeded))
"""


@pytest.fixture
def victim(tmp_path: Path) -> Iterator[dict[str, Any]]:
    """Everything that nbmp can have open, in a program of the first user."""
    with scripts.started(tmp_path, VICTIM) as script:
        told = json.loads(content(tmp_path / "told", 60))
        told["files"] = os.listdir(SHM / told["session"])
        descendants = psutil.Process(script.pid).children(recursive=True)
        yield told
        for process in descendants:  # multiprocessing's manager outlives who is killed
            if process.pid == told["pids"][-1]:
                process.kill()
    shutil.rmtree(Path(told["socket"]).parent, ignore_errors=True)


def sockets_of(pids: list[int]) -> list[str]:
    """Return the names of Unix sockets that these processes have."""
    inodes = {
        os.readlink(path)[len("socket:[") : -1]
        for pid in pids
        for path in Path(f"/proc/{pid}/fd").iterdir()
        if path.is_symlink() and os.readlink(path).startswith("socket:[")
    }
    lines = [line.split(maxsplit=7) for line in Path("/proc/net/unix").read_text().splitlines()[1:]]
    return [line[7] for line in lines if line[6] in inodes and len(line) > 7]


def test_second_user_gets_at_nothing(victim: dict[str, Any]) -> None:
    """But for the manager of `multiprocessing`, which nbmp hands on as it is, no socket has a name."""
    assert set(sockets_of(victim["pids"])) == {victim["socket"]}
    assert not any(psutil.Process(pid).net_connections("inet") for pid in victim["pids"])
    done = unprivileged.run(ATTACK, json.dumps({**victim, "sockets": [victim["socket"]]}))
    assert done.stdout == "[]\n", done.stderr
    folder = SHM / victim["session"]
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert len(victim["files"]) > 4
    assert {stat.S_IMODE((folder / name).stat().st_mode) for name in victim["files"]} == {0o600}
    assert len(victim["session"].rpartition("-")[2]) >= 12
    assert stat.S_IMODE(Path(victim["socket"]).parent.stat().st_mode) == 0o700


LISTING = "import os; print(*os.listdir('/proc/self/fd'))"


def list_descriptors(rank: int, array: Any, q: Any) -> set[str]:
    """Run a program that closes nothing by itself, as another user."""
    q.put(np.zeros(100_000))
    return programs_descriptors()


def programs_descriptors() -> set[str]:
    command = [*unprivileged.unprivileged_python(), "-I", "-c", LISTING]
    done = subprocess.run(command, close_fds=False, capture_output=True, text=True, check=True, cwd="/")
    return set(done.stdout.split())


def test_program_of_a_second_user_inherits_nothing(method: str) -> None:
    before = programs_descriptors()  # what runs the tests may hand on some
    array, q = nbmp.zeros(100_000), nbmp.Queue()
    (listed,) = nbmp.launch(list_descriptors, (array, q), start_method=method)
    assert listed <= before
    assert programs_descriptors() == before
    q.get(timeout=5)


def test_rank_that_gives_up_root_keeps_its_memory() -> None:
    """Memory files have no name, so who may open them is who may look into the process: a mode would add nothing."""
    q = nbmp.Queue()
    array = nbmp.zeros(100_000)
    q.put((array, np.ones(100_000)))
    assert nbmp.launch(give_up_root, (q,), start_method="fork") == [(0.0, 100_000.0)]
    assert array[0] == 5


def give_up_root(rank: int, q: Any) -> tuple[float, float]:
    os.setgroups([])
    os.setgid(NOBODY)
    os.setuid(NOBODY)
    shared, private = q.get(timeout=5)
    seen = float(shared[0]), float(private.sum())
    shared[0] = 5
    return seen


@pytest.fixture
def by_name() -> Iterator[None]:
    nbmp.set_sharing_strategy("file_system")
    yield
    nbmp.set_sharing_strategy("file_descriptor")


@pytest.mark.usefixtures("by_name")
@pytest.mark.parametrize("how", ["other user", "open to all", "link"])
def test_folder_that_somebody_put_in_place_of_a_sessions_is_not_read(
    how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The session's own was removed while a message was under way; its names can be seen by everybody."""
    monkeypatch.setattr(session, "_own", None)
    monkeypatch.setattr(session, "_joined", WeakTable())
    q, segment = nbmp.Queue(), place_of(array := nbmp.ones(100_000))
    assert segment is not None
    q.put(array)
    folder, kept = SHM / session.own_session().name, tmp_path / "kept"
    shutil.copytree(folder, kept)
    shutil.rmtree(folder)
    monkeypatch.setattr(session, "_joined", WeakTable())
    try:
        if how == "link":
            folder.symlink_to(kept)
        else:
            shutil.copytree(kept, folder)
            folder.chmod(0o700 if how == "other user" else 0o777)
            os.chown(folder, NOBODY if how == "other user" else os.geteuid(), 0)
        with pytest.raises(nbmp.MissingSegmentError, match="somebody has put it there"):
            q.get(timeout=5)
    finally:
        folder.unlink() if how == "link" else shutil.rmtree(folder)


@pytest.mark.usefixtures("by_name")
def test_name_that_is_taken_already_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = f"{os.getpid():012x}"
    folder = SHM / f"{manager.PREFIX}{os.geteuid()}-{taken}"
    random = iter([taken, taken[::-1]])
    monkeypatch.setattr("secrets.token_hex", lambda _: next(random))
    folder.mkdir(0o777)
    os.chown(folder, NOBODY, NOBODY)
    try:
        made = session._new()
        assert made.name != folder.name
        assert not list(folder.iterdir())
        shutil.rmtree(SHM / made.name)
    finally:
        folder.rmdir()


@pytest.mark.usefixtures("by_name")
def test_folder_of_a_second_user_is_not_shown_as_ours() -> None:
    folder = SHM / f"{manager.PREFIX}{NOBODY}-{os.getpid():x}d"
    folder.mkdir(0o777)
    folder.chmod(0o777)
    (folder / f"{os.getpid()}-array-{'0' * 16}").write_bytes(bytes(123))
    try:
        assert folder.name not in str(nbmp.memory_usage())
        assert not any(segment.size == 123 for segment in nbmp.memory_usage().segments)
    finally:
        shutil.rmtree(folder)


def test_manager_answers_nobody_without_its_key() -> None:
    """It is multiprocessing's: what it unpickles comes from who has the key, which no other process is told."""
    from multiprocessing.connection import Client

    with nbmp.Manager() as values:
        address = str(values.address)
        assert stat.S_IMODE(Path(address).parent.stat().st_mode) == 0o700
        with pytest.raises(Exception, match=r"digest|rejected"):
            Client(address, authkey=b"guessed")
        process: Any = vars(values)["_process"]
        command = Path(f"/proc/{process.pid}/cmdline").read_bytes()
        assert bytes(sys.modules["multiprocessing"].current_process().authkey) not in command
