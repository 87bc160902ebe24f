"""Segments of messages are used again, and are given back."""

from __future__ import annotations

import gc
import os
import signal
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nbmp
from nbmp import packets
from nbmp.memory import mappings
from nbmp.memory.recycler import recycler
from nbmp.pickling.quick import to_send
from tests import scripts
from tests.channels import functions
from tests.forking import fork
from tests.memory.test_views import VIEWS
from tests.strategies import ONLY_BY_DESCRIPTOR
from tests.waiting import until

INTERRUPTS = {"file_descriptor": 14_000, "file_system": 4_000}


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


@ONLY_BY_DESCRIPTOR
def test_a_message_uses_the_segment_of_one_that_was_dropped() -> None:
    q = nbmp.Queue()
    nbmp.trim()
    made = recycler.made
    for i in range(20):
        q.put(np.full(500_000, i))
        assert (q.get(timeout=5) == i).all()
    assert recycler.made - made == 1


@ONLY_BY_DESCRIPTOR
def test_what_is_sent_again_and_again_is_mapped_once_although_it_is_dropped(method: str) -> None:
    requests, answers = nbmp.Queue(), nbmp.Queue()
    context = nbmp.start_processes(
        functions.count_mappings, (requests, answers), join=False, daemon=True, start_method=method
    )
    shared, private = nbmp.zeros(50_000), np.zeros(50_000)
    for _ in range(20):
        requests.put(shared)
        requests.put((1, shared))
    for _ in range(20):
        requests.put(private)
        assert until(lambda: all(segment.is_free() for segment in recycler.segments()))
    requests.put(None)
    assert answers.get(timeout=20) == 2
    assert context is not None
    assert context.join(20)


@ONLY_BY_DESCRIPTOR
def test_receiver_gives_back_what_it_kept_by_itself(method: str) -> None:
    requests, answers = nbmp.Queue(), nbmp.Queue()
    context = nbmp.start_processes(functions.echo, (requests, answers), join=False, daemon=True, start_method=method)
    assert context is not None
    pid = context.processes[0].pid
    requests.put("ready")
    answers.get(timeout=20)
    before = segments_mapped_by(pid)
    requests.put(nbmp.zeros(50_000))
    answers.get(timeout=20)
    assert segments_mapped_by(pid) == before + 1
    requests.put("something else, so that the array is dropped")
    assert until(lambda: segments_mapped_by(pid) == before, 15)
    requests.put(None)
    assert context.join(20)


def segments_mapped_by(pid: int | None) -> int:
    return Path(f"/proc/{pid}/maps").read_text().count("-array ")


@ONLY_BY_DESCRIPTOR
def test_message_of_64_kb_takes_no_descriptor_and_a_larger_one_takes_one() -> None:
    small, large = np.zeros(64 << 10, "u1"), np.zeros(1 << 20, "u1")
    assert not any(to_send(obj).owners for obj in (small, (1, small), "x" * (64 << 10)))
    assert all(len(to_send(obj).owners) == 1 for obj in (large, (1, [large, large]), "x" * (1 << 20)))
    shared = nbmp.zeros((1000, 1000))
    assert len(to_send([shared, shared[::2], shared.T]).owners) == 1


def test_small_array_in_the_backlog_is_a_snapshot_of_the_moment_of_put() -> None:
    q = nbmp.Queue()
    array = np.zeros(30_000, "u1")
    count = 1000  # more than a socket holds
    for i in range(count):
        array[:] = i % 250
        q.put(array)
    assert all((q.get(timeout=5) == i % 250).all() for i in range(count))


def test_a_segment_is_not_used_again_while_any_view_of_it_lives() -> None:
    q = nbmp.Queue()
    q.put(np.arange(100_000))
    kept = q.get(timeout=5)[::7].reshape(-1)[5:6]
    for _ in range(10):
        q.put(np.zeros(100_000, int))
        q.get(timeout=5)
    assert kept[0] == 35


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
def test_every_kind_of_view_of_a_received_array_keeps_its_segment_from_being_used_again(view: Any) -> None:
    q = nbmp.Queue()
    ones = np.ones((4, 8), "i4")
    for large in (ones, np.ones(100_000)):
        q.put((ones, large))
        kept, expected = view(q.get(timeout=5)[0]), np.array(view(ones))
        for _ in range(6):
            q.put((np.zeros((4, 8), "i4"), np.zeros(100_000)))
            q.get(timeout=5)
        assert np.array_equal(kept, expected)


def test_a_forked_child_keeps_its_copy_while_the_parent_goes_on() -> None:
    q = nbmp.Queue()
    q.put(np.full(100_000, 7))
    array = q.get(timeout=5)
    go_read, go_write = os.pipe()
    told_read, told_write = os.pipe()
    pid = fork()
    if pid == 0:
        os.read(go_read, 1)
        os.write(told_write, b"7" if (array == 7).all() else b"x")
        os._exit(0)
    del array
    for _ in range(10):
        q.put(np.zeros(100_000, int))
        q.get(timeout=5)
    os.write(go_write, b"g")
    assert os.read(told_read, 1) == b"7"
    os.waitpid(pid, 0)
    for fd in (go_read, go_write, told_read, told_write):
        os.close(fd)


def test_unread_messages_and_kept_arrays_hold_their_segments_and_nothing_is_left_afterwards() -> None:
    nbmp.trim()
    before = descriptors()
    q = nbmp.Queue()
    for i in range(50):
        q.put(np.full(50_000, i))
    kept = [q.get(timeout=5) for _ in range(25)]
    assert all((array == i).all() for i, array in enumerate(kept))
    del q, kept
    gc.collect()
    nbmp.trim()
    assert until(lambda: descriptors() <= before, 5), (descriptors(), before)
    assert not recycler.segments()
    assert mappings.kept_bytes() == 0


@ONLY_BY_DESCRIPTOR
def test_idle_memory_is_given_back_by_itself() -> None:
    q = nbmp.Queue()
    q.put(np.zeros(500_000))
    q.get(timeout=5)
    assert recycler.segments()
    assert until(lambda: not recycler.segments() and not mappings.kept_bytes(), 10)
    assert until(lambda: not [t for t in threading.enumerate() if t.name == "nbmp-janitor"], 5)


@pytest.mark.usefixtures("no_callbacks_of_the_collector")
def test_interrupts_anywhere_in_put_and_get_lose_no_descriptor(strategy: str) -> None:
    interrupts = INTERRUPTS[strategy]
    q = nbmp.Queue()
    array = np.zeros(20_000)
    q.put(array)
    q.get(timeout=5)
    nbmp.trim()
    before = descriptors()
    armed = [False]
    raised = 0

    def interrupt(*_: Any) -> None:
        if armed[0]:
            armed[0] = False
            raise KeyboardInterrupt

    def pass_to_and_fro() -> None:
        armed[0] = True
        while armed[0]:
            q.put(array)
            q.get(timeout=5)

    earlier = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
    try:
        for _ in range(interrupts):
            try:
                pass_to_and_fro()
            except KeyboardInterrupt:
                raised += 1
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, earlier)
    assert raised > interrupts * 0.99  # one that falls into a callback of the interpreter's own is printed and lost
    while not q.empty():
        q.get(timeout=5)
    gc.collect()
    assert all(segment.is_free() for segment in recycler.segments())
    nbmp.trim()
    assert until(lambda: descriptors() <= before, 5), (descriptors(), before)


INTERRUPTED_PUTS = """
    import signal
    import nbmp
    q, put, armed = nbmp.Queue(), [], False
    def interrupt(*_):
        global armed
        if armed:
            armed = False
            raise KeyboardInterrupt
    signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
    def attempt(i):
        global armed
        armed = True
        q.put((i, "x" * 5_000))
        armed = False
        put.append(i)
    for i in range(4_000):
        try:
            attempt(i)
        except KeyboardInterrupt:
            pass
    signal.setitimer(signal.ITIMER_REAL, 0)
    q.put(("last", ""))
    got = []
    while (number := q.get(timeout=20)[0]) != "last":
        got.append(number)
    assert got == sorted(set(got)), "out of order, or twice"
    assert set(put) <= set(got), "lost"
    assert len(put) > 500
    print("good")
"""


def test_interrupts_in_put_lose_and_repeat_nothing_although_the_socket_is_full(tmp_path: Path) -> None:
    assert scripts.output(tmp_path, INTERRUPTED_PUTS) == "good\n"


@ONLY_BY_DESCRIPTOR
def test_fresh_memory_is_written_warm_memory_mapped_small_messages_take_neither(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    written: list[int] = []
    pwrite = os.pwrite

    def noted(fd: int, data: memoryview, offset: int) -> int:
        written.append(len(data))
        return pwrite(fd, data, offset)

    monkeypatch.setattr(os, "pwrite", noted)
    nbmp.trim()
    queue = nbmp.Queue()
    received: Any = None
    buffers: list[int] | None = None
    for size, writes in (
        (1 << 16, []),
        (1 << 20, [1 << 20]),
        (1 << 20, []),
    ):  # the third one finds the segment of the second
        del received
        written.clear()
        queue.put(np.full(size, 7, "u1"))
        received = queue.get(timeout=10)
        assert received.sum() == 7 * size
        assert written == writes
        assert buffers in (None, list(map(id, packets._buffers)))  # messages are received into the same buffer
        buffers = list(map(id, packets._buffers))
    queue.close()
