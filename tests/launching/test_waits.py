"""Which ranks wait, for what and how long; what runs in this process; stopping some of it."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from contextlib import suppress
from multiprocessing import synchronize
from typing import Any, NamedTuple
from unittest import mock

import pytest

import nbmp
from nbmp import platforms
from nbmp.launching import board, left, registry
from nbmp.launching.where.watching import Wait
from tests.launching import functions
from tests.waiting import until


def wait_or_work(rank: int, items: Any, lock: Any, joined: Any) -> None:
    if rank == 0:
        items.get()
    elif rank == 1:
        with lock:
            pass
    elif rank == 2:
        joined.join()
    elif rank == 3:
        while items.empty():
            sum(range(1000))
        return
    elif rank == 4:
        time.sleep(1000)


def test_waits_are_seen_with_their_place_and_time() -> None:
    items, joined, lock = nbmp.Queue(), nbmp.JoinableQueue(), multiprocessing.get_context("fork").Lock()
    joined.put(1)
    seen: dict[int, Wait] = {}

    def look(condition: Any) -> bool:
        time.sleep(0.1)
        seen.clear()
        seen.update({wait.rank: wait for wait in context.waits()})
        return bool(condition())

    with lock:
        context = functions.begin(wait_or_work, (items, lock, joined), 5, "fork")
        try:
            assert context.waits() == ()  # at the first look
            assert until(lambda: look(lambda: seen.keys() == {0, 1, 2})), seen
            kinds = {rank: wait.waits_for for rank, wait in seen.items()}
            assert kinds == {0: "a queue (get)", 1: "a lock", 2: "a queue (join)"}
            assert all(wait.frame.function == "wait_or_work" for wait in seen.values())
            assert until(lambda: look(lambda: seen[0].seconds > 1 and seen[1].seconds > 1 and seen[2].seconds > 1))
            assert f"rank 0 waits for a queue (get) since {seen[0].seconds:.1f} s: " in str(seen[0])
            items.put(None)
            assert until(lambda: look(lambda: 0 not in seen))
        finally:
            context.stop(0)
    assert context.waits() == ()


def sleep_often_then_wait(rank: int, items: Any) -> None:
    for _ in range(40):
        time.sleep(0.1)
    items.get()


def test_a_wait_after_many_short_sleeps_is_seen_soon_and_lasts_while_others_ask_too() -> None:
    items = nbmp.Queue()
    context = functions.begin(sleep_often_then_wait, (items,), 1, "fork")
    waits: list[Wait] = []

    def look() -> bool:
        time.sleep(0.2)
        waits[:] = context.waits()
        return bool(waits)

    try:
        assert until(look)
        before = waits[0].seconds
        context.stacks()
        assert look()
        assert waits[0].seconds > before
    finally:
        context.stop(0)


def test_what_runs_is_listed_until_it_has_ended(tmp_path: Any) -> None:
    before = registry.running()
    context = functions.begin(functions.stay_then_wait, (str(tmp_path),), 2, "fork")
    with nbmp.Pool(1, start_method="fork") as pool:
        assert registry.running() == [*before, context, pool._workers]
        found = {group.name: group for group in nbmp.status()}
        assert [rank.state for rank in found[f"launch-{context.number}"].ranks] == ["running"] * 2
        assert found[f"pool-{pool._workers.number}"].kind == "pool"
        table = str(nbmp.status()).splitlines()
        assert table[0].split() == ["name", "rank", "pid", "state", "time", "CPU", "memory", "last", "line"]
        assert f"launch-{context.number} (fork)" in table[1]
    (tmp_path / "go").touch()
    context.join()
    assert until(lambda: registry.running() == before)


def test_some_ranks_are_stopped_and_the_others_go_on(method: str, tmp_path: Any) -> None:
    context = functions.begin(functions.stay_then_wait, (str(tmp_path),), 3, method)
    assert until(lambda: all((tmp_path / f"pid{rank}").exists() for rank in range(3)))
    assert context.halt(5, [0, 2]).startswith("ranks 0 and 2 ended ")
    assert [record.state for record in context.ranks] == ["stopped", "running", "stopped"]
    assert context.halt(5, [0]) == "had ended before"
    (tmp_path / "go").touch()
    assert until(lambda: context.ranks[1].ended)
    assert context.results[1] == 1


class Shared(NamedTuple):
    """What ranks use together, each of a kind that a rank which ends leaves out of order."""

    lock: Any
    event: Any
    barrier: Any
    condition: Any
    value: Any


def use_and_stay(rank: int, shared: Shared, ready: Any) -> None:
    ready.put(rank)
    if rank == 0:
        with shared.lock, shared.lock, shared.value:
            time.sleep(1000)
    elif rank == 1:
        shared.event.wait()
    elif rank == 2:
        shared.barrier.wait()
    elif rank == 3:
        with shared.condition:
            shared.condition.wait()


def use_again(rank: int, shared: Shared) -> None:
    if rank == 0:
        shared.lock.acquire()
    elif rank == 1:
        shared.event.set()
    elif rank == 2:
        shared.barrier.wait()
    elif rank == 3:
        with shared.condition:
            shared.condition.notify()
    elif rank == 4:
        shared.value.value += 1


def test_who_waits_for_what_a_rank_had_when_it_was_stopped_is_told_whose_it_was(method: str) -> None:
    shared = Shared(nbmp.RLock(), nbmp.Event(), nbmp.Barrier(2), nbmp.Condition(), nbmp.Value("i", 0))
    ready = nbmp.Queue()
    first = functions.begin(use_and_stay, (shared, ready), 4, method)
    assert sorted(ready.get() for _ in range(4)) == [0, 1, 2, 3]
    assert until(lambda: [len(record.notes.all()) for record in first.ranks] == [2, 1, 1, 1])
    first.stop()
    assert first.aftermath.endswith(
        "rank 0 had a lock and ranks 1, 2 and 3 waited for an event, condition or barrier "
        "(make a new one before you start again)"
    )
    second = functions.begin(use_again, (shared,), 5, method)
    told: list[str] = []

    def look() -> bool:
        time.sleep(0.1)
        told[:] = [wait.waits_for for wait in second.waits()]
        return len(told) == 5

    name = registry.title(first)
    try:
        assert until(look), told
        assert told == [
            f"a lock that rank 0 of {name} had when it was stopped",
            f"an event (set) that rank 1 of {name} waited for when it was stopped",
            f"a barrier that rank 2 of {name} waited for when it was stopped",
            f"a condition (notify) that rank 3 of {name} waited for when it was stopped",
            f"a lock that rank 0 of {name} had when it was stopped",
        ]
        assert f"waits for {told[0]}" in str(second.stacks())
    finally:
        second.stop(0)


def give_and_take(rank: int, locks: list[Any], reentrant: Any, condition: Any, counter: Any) -> int:
    for lock in locks:
        lock.acquire()
    for lock in locks:
        lock.release()
    with reentrant, reentrant:
        pass
    with condition:
        condition.wait(0.01)
        condition.notify_all()
    counter.value += 1
    row = board.own_row()
    assert row is not None
    return len(row.notes.all())


def test_a_rank_has_nothing_any_more_that_it_gave_back_and_no_number_of_locks_is_too_many(method: str) -> None:
    locks = [nbmp.Lock() for _ in range(20)]
    others = nbmp.RLock(), nbmp.Condition(), nbmp.Value("i", 0)
    assert nbmp.launch(give_and_take, (locks, *others), 1, start_method=method) == [0]


def die_with(rank: int, lock: Any) -> None:
    lock.acquire()
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_killed_rank_is_said_to_have_had_a_lock_until_somebody_gives_it_back(method: str) -> None:
    lock = nbmp.Lock()
    with pytest.raises(nbmp.ProcessExitedException, match="It had a lock"):
        nbmp.launch(die_with, (lock,), 1, start_method=method)
    assert left.left_by(lock.noted_as)
    assert not lock.acquire(timeout=0.01)
    lock.release()
    assert not left.left_by(lock.noted_as)
    with lock:
        pass


def release_anothers(rank: int, lock: Any) -> str:
    try:
        lock.release()
    except AssertionError as error:
        return str(error)
    return ""


def test_a_lock_stays_the_one_of_multiprocessing(method: str) -> None:
    lock = nbmp.RLock()
    with lock:
        refused = nbmp.launch(release_anothers, (lock,), 1, start_method=method)
    assert refused == ["attempt to release recursive lock not owned by thread"]
    assert isinstance(nbmp.Lock(), synchronize.Lock)
    assert repr(nbmp.Lock()) == "<Lock(owner=None)>"
    assert nbmp.Lock().acquire(False) is True


def hold_until_interrupted(lock: Any, ready: Any) -> None:
    with lock:
        ready.put(None)
        with suppress(KeyboardInterrupt):
            lock.acquire()
        with suppress(KeyboardInterrupt):
            ready.put(None)
            time.sleep(1000)


def test_an_interrupted_wait_for_a_lock_takes_nothing(method: str) -> None:
    lock, ready = nbmp.Lock(), nbmp.Queue()
    process = nbmp.get_context(method).Process(target=hold_until_interrupted, args=(lock, ready))
    process.start()
    ready.get()
    pid = process.pid
    assert pid is not None
    assert until(lambda: platforms.waits_for_lock(pid, pid))
    os.kill(pid, signal.SIGINT)
    ready.get()
    assert not lock.acquire(False)  # it still has what it had
    os.kill(pid, signal.SIGINT)
    process.join()
    assert lock.acquire(False)


def take_at_an_interrupt(rank: int, lock: Any) -> bool:
    with mock.patch.object(left.Notes, "add", side_effect=KeyboardInterrupt), pytest.raises(KeyboardInterrupt):
        lock.acquire()
    return bool(lock.acquire(False))


def test_a_lock_that_came_with_an_interrupt_is_given_back() -> None:
    assert nbmp.launch(take_at_an_interrupt, (nbmp.Lock(),), 1, start_method="fork") == [True]
