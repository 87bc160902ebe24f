"""What `memory_usage` tells: every segment of this process and its descendants once, whose it is and who has it."""

from __future__ import annotations

import dataclasses
import fcntl
import mmap
import os
import pickle
import re
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nbmp
from nbmp.monitoring.memory import usage as memory
from nbmp.monitoring.memory.segments import SegmentUsage
from nbmp.platforms import cgroups
from tests import scripts
from tests.forking import fork
from tests.launching import functions
from tests.strategies import ONLY_BY_DESCRIPTOR, ONLY_BY_NAME
from tests.waiting import tell, until

SIZE = 3_000_017
"""Bytes of an array that no other test makes."""


def rows(size: int = SIZE) -> list[SegmentUsage]:
    """Return the segments of this size."""
    return [segment for segment in nbmp.memory_usage().segments if segment.size == size]


def test_an_array_is_one_row_until_it_is_dropped(strategy: str) -> None:
    array = nbmp.zeros(SIZE, "u1")
    views = array[1:], array[::-2]
    (row,) = rows()
    assert row.strategy == strategy
    assert (row.state, row.purpose, row.creator, row.mapped_by) == ("in use", "array", os.getpid(), (os.getpid(),))
    del array, views
    assert until(lambda: rows() == [])


@ONLY_BY_DESCRIPTOR
def test_memory_is_taken_as_it_is_written() -> None:
    array = nbmp.zeros(SIZE, "u1")
    assert rows()[0].taken == 0
    array[: SIZE // 2] = 1
    assert SIZE // 2 <= (rows()[0].taken or 0) < SIZE
    before = nbmp.memory_usage().in_use
    array[:] = 1
    assert SIZE * 0.4 < nbmp.memory_usage().in_use - before < SIZE * 0.6


def test_small_arrays_that_share_a_segment_are_one_row() -> None:
    before = len(nbmp.memory_usage().segments)
    arrays = [nbmp.ones(10) for _ in range(1000)]
    assert len(nbmp.memory_usage().segments) - before == 1
    del arrays


def hold(rank: int, folder: str, array: Any) -> Any:
    own = nbmp.full(SIZE + 1 + rank, rank, "u1")
    tell(f"{folder}/{rank}", os.getpid())
    functions.wait_for(rank, f"{folder}/go")
    return own


def test_ranks_are_looked_at_and_named(method: str, tmp_path: Path) -> None:
    array = nbmp.zeros(SIZE, "u1")
    context = functions.begin(hold, (str(tmp_path), array), 2, method)
    assert until(lambda: (tmp_path / "0").exists() and (tmp_path / "1").exists())
    pids = [pid or 0 for pid in context.pids()]
    usage = nbmp.memory_usage()
    assert usage.processes[0] == os.getpid()
    assert set(pids) < set(usage.processes)
    assert set(rows()[0].mapped_by) >= {os.getpid(), *pids}
    for rank, pid in enumerate(pids):
        (row,) = rows(SIZE + 1 + rank)
        assert (row.creator, row.mapped_by, row.state) == (pid, (pid,), "in use")
    tell(tmp_path / "go", "")
    assert context.join()
    for rank, pid in enumerate(pids):
        (row,) = rows(SIZE + 1 + rank)
        assert (row.creator, row.mapped_by) == (pid, (os.getpid(),)), "it outlives its creator"
    assert not set(pids) & set(nbmp.memory_usage().processes)


def messages(creator: int) -> list[str]:
    """Return the states of the segments for messages that this process has made."""
    segments = nbmp.memory_usage().segments
    return [segment.state for segment in segments if (segment.purpose, segment.creator) == ("message", creator)]


@ONLY_BY_DESCRIPTOR
def test_a_message_is_in_use_until_its_array_is_dropped_and_cached_from_then_on() -> None:
    nbmp.trim()
    own = os.getpid()
    q = nbmp.Queue()
    q.put(np.ones(SIZE))
    assert messages(own) == ["in use"], "under way"
    array = q.get(timeout=5)
    assert messages(own) == ["in use"]
    part = array[5:6]
    del array
    assert messages(own) == ["in use"]
    del part
    assert messages(own) == ["cached"]
    assert nbmp.memory_usage().cached >= SIZE * 8
    nbmp.trim()
    assert messages(own) == []


@ONLY_BY_NAME
def test_a_message_with_a_name_is_not_kept_for_the_next_one() -> None:
    own = os.getpid()
    q = nbmp.Queue()
    q.put(np.ones(SIZE))
    array = q.get(timeout=5)
    assert messages(own) == ["in use"]
    part = array[5:6]
    del array
    assert messages(own) == ["in use"]
    del part
    assert messages(own) == []


def put_and_wait(rank: int, path: str, queue: Any) -> None:
    queue.put(np.ones(SIZE))
    functions.wait_for(rank, path)


@ONLY_BY_DESCRIPTOR
def test_what_a_rank_keeps_for_reuse_is_cached(method: str, tmp_path: Path) -> None:
    q = nbmp.Queue()
    context = functions.begin(put_and_wait, (str(tmp_path / "go"), q), 1, method)
    array = q.get(timeout=20)
    pid = context.pids()[0] or 0
    assert messages(pid) == ["in use"]
    del array
    assert messages(pid) == ["cached"]
    tell(tmp_path / "go", "")
    assert context.join()


def test_segment_with_a_name_in_dev_shm_is_recognised() -> None:
    folder = Path(f"/dev/shm/nbmp-{os.getuid()}-{os.getpid()}")
    folder.mkdir(0o700)
    session = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    fcntl.flock(session, fcntl.LOCK_SH)  # somebody belongs to it: it is not swept away
    try:
        path, lease = folder / "4242-array-7", folder / "4242-array-7.1"
        path.write_bytes(bytes(SIZE))
        lease.hardlink_to(path)
        with lease.open("r+b") as file, mmap.mmap(file.fileno(), 0) as mapping:
            path.unlink()
            lease.unlink()
            (row,) = rows()
            assert (row.strategy, row.creator, row.mapped_by) == ("file_system", 4242, (os.getpid(),))
            assert row.taken is not None
            assert row.taken >= SIZE
            assert nbmp.memory_usage().bytes_of(strategy="file_system") == row.taken
            assert len(mapping) == SIZE
            under_way = folder / f"{os.getpid()}-message-8"
            under_way.write_bytes(bytes(SIZE + 8))
            lease.hardlink_to(under_way)
            (row,) = rows(SIZE + 8)
            assert (row.strategy, row.state, row.purpose, row.mapped_by) == ("file_system", "in use", "message", ())
            lease.unlink()
            assert rows(SIZE + 8)[0].state == "cached"
            under_way.unlink()
    finally:
        folder.rmdir()
        os.close(session)
    assert rows() == []


@ONLY_BY_DESCRIPTOR
def test_cost_grows_with_processes_and_nothing_that_is_opened_stays_open() -> None:
    events = [0]  # no global: that would be None when the interpreter ends

    def count(event: str, _: object) -> None:
        events[0] += event in ("open", "os.listdir", "os.scandir")

    def opened_by_a_snapshot() -> int:
        """Return how often one opens a file or lists a folder."""
        before = events[0]
        nbmp.memory_usage()
        return events[0] - before

    nbmp.memory_usage()
    sys.addaudithook(count)  # cannot be taken away again
    few = opened_by_a_snapshot()
    arrays = [nbmp.zeros(SIZE, "u1") for _ in range(1000)]
    before = os.listdir("/proc/self/fd")
    assert opened_by_a_snapshot() <= few + 20  # other tests may have made a folder meanwhile
    assert os.listdir("/proc/self/fd") == before
    assert len(rows()) == 1000
    del arrays


def test_processes_that_end_meanwhile_are_no_error() -> None:
    deadline = time.monotonic() + 0.5
    children: list[int] = []
    while time.monotonic() < deadline:
        if (pid := fork()) == 0:
            os._exit(0)
        children.append(pid)
        assert nbmp.memory_usage().hidden == ()
        if len(children) > 3:
            os.waitpid(children.pop(0), 0)
    for pid in children:
        os.waitpid(pid, 0)


def test_a_process_that_the_system_hides_is_listed_and_no_error(tmp_path: Path) -> None:
    told = scripts.output(
        tmp_path,
        """
        import ctypes, os, signal
        import nbmp
        array = nbmp.zeros(100_000)
        nbmp.memory_usage()
        if os.getuid() == 0:
            os.setuid(65534)
        dumpable, libc = 4, ctypes.CDLL(None)  # what another user's process is to us: not to be looked into
        libc.prctl(dumpable, 1)
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            libc.prctl(dumpable, 0)
            os.write(writing, b"!")
            signal.pause()
        os.read(reading, 1)
        usage = nbmp.memory_usage()
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        print(usage.hidden == (child,), usage.processes == (os.getpid(),))
        print([segment.mapped_by == (os.getpid(),) for segment in usage.segments])
        print("not to be seen: " in str(usage))
        """,
    )
    assert told.split("\n")[:3] == ["True True", "[True]", "True"]


def test_limits_are_those_of_the_system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = nbmp.memory_usage()
    shm = os.statvfs("/dev/shm")
    assert usage.dev_shm is not None
    assert usage.dev_shm.limit == shm.f_blocks * shm.f_frsize
    assert 0 <= usage.dev_shm.used <= usage.dev_shm.limit
    assert usage.dev_shm.free == usage.dev_shm.limit - usage.dev_shm.used
    for name, value in (("max", "8000000000"), ("current", "3000000000"), ("stat", "anon 7\ninactive_file 1000000000")):
        (tmp_path / f"memory.{name}").write_text(value)
    monkeypatch.setattr(cgroups, "_folders", lambda controller: (str(tmp_path),))
    assert nbmp.memory_usage().control_group == memory.Room(8_000_000_000, 2_000_000_000)
    (tmp_path / "memory.max").write_text("max")
    assert nbmp.memory_usage().control_group is None


def test_snapshot_is_plain_data() -> None:
    array = nbmp.zeros(SIZE, "u1")
    usage = nbmp.memory_usage()
    assert pickle.loads(pickle.dumps(usage)) == usage
    with pytest.raises(dataclasses.FrozenInstanceError):
        usage.hidden = ()  # type: ignore[misc]
    del array
    assert any(segment.size == SIZE for segment in usage.segments)


def test_it_prints_as_a_table_of_the_largest(strategy: str) -> None:
    arrays = [nbmp.zeros(SIZE * 30 + index, "u1") for index in range(memory.ROWS + 2)]
    lines = str(nbmp.memory_usage()).split("\n")
    assert re.match(r"shared memory of \d+ process(es)?: [\d.]+ .B in use, [\d.]+ .B cached$", lines[0])
    assert "/dev/shm" in lines[2]
    head = next(index for index, line in enumerate(lines) if line.split()[:2] == ["size", "taken"])
    taken = "0 kB" if strategy == "file_descriptor" else "90 MB"  # which is reserved as it is made
    assert " ".join(lines[head + 1].split()) == f"90 MB {taken} in use array this process this process"
    assert lines[-1].startswith("and ")
    assert len(lines) == head + memory.ROWS + 2
    del arrays


def test_what_launches_need_themselves_is_one_line_of_the_table() -> None:
    one = SegmentUsage(4096, 4096, "in use", "board", "file_descriptor", 7, (7, 8), (7,), (1, 2))
    array = one._replace(size=SIZE, purpose="array")
    room = memory.Room(1 << 30, 0)
    told = str(memory.MemoryUsage((array, one, one, one), (7, 8), (), room, None, 1 << 30, {(7, 8): "ranks 0 1"}))
    assert " board " not in told
    assert told.endswith("\nbookkeeping of launches: 3 segments, 12 kB")
    assert " array    7        ranks 0 1\n" in told
