"""Forks in the middle: the child is whole, takes nothing that is the parent's, and keeps nothing busy."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import nbmp
from nbmp.memory import mappings
from nbmp.memory.recycler import recycler
from tests import scripts
from tests.forking import fork
from tests.strategies import ONLY_BY_DESCRIPTOR
from tests.waiting import until


def in_child(work: Callable[[], Any]) -> int:
    """Run `work` in a fork of this process, at most 20 seconds; return 0 when it returned something true."""
    pid = fork()
    if pid == 0:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(20)
        code = 1
        try:
            code = 0 if work() else 2
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def test_child_reads_a_shared_array_that_the_parent_dropped_and_used_anew() -> None:
    array = nbmp.full(100_000, 7)
    gate = os.eventfd(0)
    pid = fork()
    if pid == 0:
        os.eventfd_read(gate)
        os._exit(0 if (array == 7).all() else 1)
    del array
    others = [nbmp.full(100_000, i) for i in range(20)]
    os.eventfd_write(gate, 1)
    assert os.waitpid(pid, 0)[1] == 0
    assert len(others) == 20
    os.close(gate)


@ONLY_BY_DESCRIPTOR
def test_child_keeps_no_cache_of_the_parents_and_may_put_and_get() -> None:
    q = nbmp.Queue()
    q.put(np.ones(100_000))
    q.get(timeout=5)
    assert recycler.segments()

    def child() -> bool:
        clean = not recycler.segments() and not mappings.kept_bytes()
        q.put(np.full(100_000, 3))
        return clean and bool((q.get(timeout=5) == 3).all())

    assert in_child(child) == 0


def test_backlog_is_sent_once_by_the_parent_only() -> None:
    q = nbmp.Queue()
    for i in range(3_000):
        q.put((i, "x" * 5_000))  # more than a socket holds
    assert q._feeder._backlog
    assert in_child(lambda: not q._feeder._backlog and q._feeder._thread is None) == 0
    assert [q.get(timeout=20)[0] for _ in range(3_000)] == list(range(3_000))
    assert q.empty()


def test_forks_while_another_thread_is_in_put_and_get_are_whole_and_keep_nothing_busy() -> None:
    q, mine = nbmp.Queue(), nbmp.Queue()
    over = threading.Event()

    def pass_to_and_fro() -> None:
        while not over.is_set():
            q.put(np.ones(50_000))
            q.get(timeout=20)

    threads = [threading.Thread(target=pass_to_and_fro) for _ in range(2)]
    for thread in threads:
        thread.start()

    def child() -> bool:
        mine.put(np.full(50_000, 3))
        nbmp.zeros(3)
        return bool((mine.get(timeout=10) == 3).all())

    try:
        assert [in_child(child) for _ in range(30)] == [0] * 30
    finally:
        over.set()
        for thread in threads:
            thread.join(20)
    assert until(lambda: all(segment.is_free() for segment in recycler.segments()), 5)


def test_child_of_a_fork_amid_the_first_messages_of_another_thread_can_send(tmp_path: Path) -> None:
    """In a new program, where the first message would import what it needs: the child could never import it."""
    source = f"""
        import os, signal, threading
        import numpy as np
        import nbmp

        nbmp.set_sharing_strategy({nbmp.get_sharing_strategy()!r})
        q, mine = nbmp.Queue(), nbmp.Queue()
        def pass_to_and_fro():
            while True:
                q.put(np.ones(50_000))
                q.get(timeout=20)
        for _ in range(2):
            threading.Thread(target=pass_to_and_fro, daemon=True).start()
        child = os.fork()
        if child == 0:
            signal.alarm(10)
            mine.put(np.full(50_000, 3))
            os._exit(int(mine.get(timeout=5).sum() == 150_000))
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
        os._exit(0)
        """
    assert [scripts.output(tmp_path, source) for _ in range(4)] == ["1\n"] * 4


def test_threads_that_put_and_get_at_once_lose_and_repeat_nothing() -> None:
    q = nbmp.Queue()
    got: list[int] = []

    def put(start: int) -> None:
        for i in range(start, start + 400):
            q.put(np.full(20_000 if i % 3 else 2, i))

    def get() -> None:
        for _ in range(400):
            array = q.get(timeout=20)
            assert (array == array[0]).all()
            got.append(int(array[0]))

    threads = [threading.Thread(target=put, args=(400 * i,)) for i in range(4)]
    threads += [threading.Thread(target=get) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(got) == list(range(1600))
