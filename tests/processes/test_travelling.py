"""Locks, events, values and other parts of the standard library travel to processes of every start method."""

from __future__ import annotations

import multiprocessing
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import nbmp
from tests.processes import functions
from tests.waiting import PATIENCE, content

MAKERS: dict[str, Callable[[], Any]] = {
    "Lock": nbmp.Lock,
    "RLock": nbmp.RLock,
    "Semaphore": lambda: nbmp.Semaphore(1),
    "BoundedSemaphore": lambda: nbmp.BoundedSemaphore(1),
    "Condition": nbmp.Condition,
}


def started(method: str, target: Callable[..., Any], *args: Any) -> Any:
    process = nbmp.get_context(method).Process(target=target, args=args)
    process.start()
    return process


@pytest.mark.parametrize("kind", MAKERS)
def test_lock_excludes_processes_of_every_method(method: str, kind: str) -> None:
    lock, counter = MAKERS[kind](), nbmp.Value("i", 0, lock=False)
    processes = [started(method, functions.add_locked, lock, counter, 500) for _ in range(2)]
    for process in processes:
        process.join(PATIENCE)
    assert counter.value == 1000


def test_lock_taken_here_is_taken_there(method: str) -> None:
    lock = nbmp.Lock()

    def try_it(rank: int) -> bool:
        return functions.try_lock(lock)

    with lock:
        assert nbmp.launch(try_it, nprocs=2, start_method=method) == [False, False]
    assert sorted(nbmp.launch(try_it, nprocs=2, start_method=method)) == [False, True]


def test_locks_of_every_context_travel_to_ranks_of_every_other(method: str) -> None:
    locks = [nbmp.get_context(other).Lock() for other in (None, *nbmp.get_all_start_methods())]

    def take_all(rank: int, given: list[Any]) -> int:
        return sum(functions.try_lock(lock) for lock in given)

    assert nbmp.launch(take_all, (locks,), start_method=method) == [len(locks)]
    assert [functions.try_lock(lock) for lock in locks] == [False] * len(locks)


def test_event_barrier_and_condition_wake_other_processes(method: str) -> None:
    context = nbmp.get_context(method)
    told = context.Queue()
    event = context.Event()
    process = started(method, functions.wait_for, event, told)
    event.set()
    assert told.get(timeout=PATIENCE) == "heard"
    process.join()

    barrier = context.Barrier(2)
    process = started(method, functions.meet, barrier, told)
    assert {barrier.wait(PATIENCE), told.get(timeout=PATIENCE)} == {0, 1}
    process.join()

    condition, waiting = context.Condition(), context.Semaphore(0)
    process = started(method, functions.wait_until_notified, condition, waiting, told)
    assert waiting.acquire(timeout=PATIENCE)
    with condition:
        condition.notify()
    assert told.get(timeout=PATIENCE) is True
    process.join()


def test_values_and_arrays_are_shared(method: str) -> None:
    context = nbmp.get_context(method)
    counter, numbers, raw = context.Value("i", 0), context.Array("d", 3), context.RawArray("i", 2)
    processes = [started(method, functions.add, counter, 300) for _ in range(2)]
    processes += [started(method, functions.set_item, there, 1, 7) for there in (numbers, raw)]
    for process in processes:
        process.join(PATIENCE)
    assert (counter.value, numbers[:], raw[:]) == (600, [0, 7, 0], [0, 7])


def test_they_travel_through_a_queue_and_to_a_pool(method: str) -> None:
    lock, counter = nbmp.Lock(), nbmp.Value("i", 0)
    there = nbmp.Queue()
    there.put((lock, counter))

    def take(rank: int) -> None:
        lock, counter = there.get(timeout=PATIENCE)
        functions.add_locked(lock, counter, 5)

    nbmp.launch(take, start_method=method)
    assert counter.value == 5

    with nbmp.get_context(method).Pool(2, functions.remember, (lock,)) as pool:
        pool.starmap(functions.add, [(counter, 10)] * 4)
        assert pool.map(functions.try_remembered, [0]) == [True]
    assert counter.value == 45


def test_queue_and_pipe_of_the_standard_library_travel(method: str) -> None:
    theirs = multiprocessing.get_context("spawn")
    for there in (theirs.Queue(), theirs.SimpleQueue(), theirs.JoinableQueue()):
        process = started(method, functions.put, there, "an item")
        assert there.get() == "an item"
        process.join()
        there.close()
    reader, writer = multiprocessing.Pipe(duplex=False)
    process = started(method, functions.send, writer, "a message")
    assert reader.recv() == "a message"
    process.join()
    reader.close()
    writer.close()


def test_lock_of_the_standard_librarys_fork_context_is_named_as_what_cannot_travel() -> None:
    lock = multiprocessing.get_context("fork").Lock()
    with pytest.raises(nbmp.CannotTravelError, match=r"args\[0\]\[1\]\S* cannot travel.*nbmp\.Lock"):
        nbmp.launch(print, ([1, lock],), start_method="forkserver")


@pytest.mark.parametrize("made_by", [None, "method"])
def test_manager_serves_processes_of_every_method(method: str, made_by: str | None) -> None:
    with nbmp.get_context(made_by and method).Manager() as manager:
        shared, names, lock = manager.dict(), manager.list(["first"]), manager.Lock()
        process = started(method, functions.set_item, shared, "from", method)
        process.join(PATIENCE)

        def append(rank: int) -> None:
            with lock:
                names.append(f"rank {rank}")

        nbmp.launch(append, nprocs=2, start_method=method)
        assert dict(shared) == {"from": method}
        assert sorted(names) == ["first", "rank 0", "rank 1"]


def test_manager_with_a_class_of_ones_own(method: str) -> None:
    from multiprocessing.managers import BaseManager

    class Counter:
        def __init__(self) -> None:
            self.count = 0

        def next(self) -> int:
            self.count += 1
            return self.count

    class Manager(BaseManager):
        pass

    Manager.register("Counter", Counter)
    with Manager(ctx=nbmp.get_context(method)) as manager:
        counter = manager.Counter()  # type: ignore[attr-defined]
        assert [counter.next(), counter.next()] == [1, 2]


def test_process_killed_with_a_lock_leaves_it_taken(method: str, tmp_path: Path) -> None:
    lock = nbmp.Lock()

    def hold() -> None:
        lock.acquire()
        functions.ready_and_wait(str(tmp_path / "ready"))

    process = started(method, hold)
    content(tmp_path / "ready")
    process.kill()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    assert lock.acquire(timeout=0.1) is False  # as in the standard library
    lock.release()


def test_threads_start_and_join_processes_side_by_side(method: str) -> None:
    counter = nbmp.Value("i", 0)

    def one() -> None:
        started(method, functions.add, counter, 1).join(PATIENCE)

    threads = [threading.Thread(target=one) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counter.value == 4
