"""Which ranks wait, for what and how long; what runs in this process; stopping some of it."""

from __future__ import annotations

import multiprocessing
import time
from typing import Any

import nbmp
from nbmp.launching import registry
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
