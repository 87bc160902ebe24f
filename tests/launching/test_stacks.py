"""Where ranks are, whatever they do."""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import queue
import re
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import nbmp
from nbmp.launching.messages import STACK_SIGNAL
from nbmp.launching.where.stacks import RankStack, Stacks
from tests.launching import functions
from tests.waiting import until

FOREVER = 1000


def be_somewhere(rank: int, items: Any, lock: Any, barrier: Any) -> None:
    """Tell by `items` that the next line is the last one."""
    places: list[Callable[[], Any]] = [in_c_with_the_gil, größer, items.get, lock.acquire, barrier.wait]
    while not items.empty():
        time.sleep(0.01)
    places[rank]()


def in_c_with_the_gil() -> None:
    re.match("(a+)+$", "a" * 1000 + "b")


def größer() -> None:
    while True:
        sum(range(1000))


def settled(context: nbmp.ProcessContext, is_met: Callable[[Stacks], object]) -> Stacks:
    """Return the first stacks that are as awaited."""
    found: list[Stacks] = []

    def look() -> object:
        found[:] = [context.stacks(timeout=10)]
        return is_met(found[0])

    assert until(look), found[0].text(all_frames=True)
    return found[0]


def function_of(rank: RankStack) -> str:
    return rank.main.frames[-1].function if rank.main and rank.main.frames else rank.unknown


def wait_of(rank: RankStack) -> str:
    return rank.main.waits_for if rank.main else rank.unknown


@pytest.mark.may_keep("descriptors")  # the standard barrier lies in an arena that multiprocessing keeps
def test_every_rank_tells_its_stack_whatever_it_does(method: str) -> None:
    standard = multiprocessing.get_context(method)
    lock, barrier = standard.Lock(), standard.Barrier(3)
    places = ["in_c_with_the_gil", "größer", "be_somewhere", "be_somewhere", "be_somewhere"]
    waits = ["", "", "a queue (get)", "a lock", "a barrier"]
    expected = list(zip(places, waits, strict=True))[: 5 if method == "fork" else 4]
    with lock:
        context = functions.begin(be_somewhere, (nbmp.Queue(), lock, barrier), len(expected), method)
        try:
            found = settled(context, lambda stacks: [(function_of(rank), wait_of(rank)) for rank in stacks] == expected)
        finally:
            context.stop(0)
    assert all(rank.main and rank.main.frames[0].function == "be_somewhere" for rank in found)
    text = str(found)
    assert f"rank 1 (pid {context.pids()[1]}) running for" in text
    assert "places[rank]()" in text
    assert "called from" in text
    assert "in _body" not in text


def be_odd(rank: int) -> None:
    if rank == 0:
        os.kill(os.getpid(), signal.SIGSTOP)
    elif rank == 1:
        os.execvp("sleep", ["sleep", str(FOREVER)])
    elif rank == 2:
        raise ValueError("rank 2 failed")
    elif rank == 3:
        signal.pthread_sigmask(signal.SIG_BLOCK, [STACK_SIGNAL])
        time.sleep(FOREVER)


def test_rank_that_cannot_answer_says_why() -> None:
    context = functions.begin(be_odd, (), 4, "fork")
    try:
        # not asked before: a question that comes in the very moment of an exec would end the new program
        assert until(lambda: Path(f"/proc/{context.pids()[1]}/cmdline").read_bytes().startswith(b"sleep"))
        found = settled(
            context,
            lambda stacks: (
                "is stopped" in stacks[0].unknown  # not: still starting
                and "another program" in stacks[1].unknown
                and "has ended" in stacks[2].unknown
                and stacks[3].main is not None
                and "blocks signal" in stacks[3].main.unknown
            ),
        )
    finally:
        context.stop(0)
    assert f"is stopped by a signal and tells nothing until it goes on (kill -CONT {context.pids()[0]})" in str(
        found[0]
    )
    assert str(found[2]).endswith("has ended: ValueError: rank 2 failed")
    assert f"blocks signal {STACK_SIGNAL}" in str(found[3])
    with pytest.raises(nbmp.ProcessRaisedException):
        context.join()
    assert str(context.stacks([0])).endswith("has ended: stopped")


def be_a_halted_thread(rank: int, in_c: bool) -> None:
    threading.Thread(target=load, args=(threading.Event(),), name="loader", daemon=True).start()
    threading.Thread(target=load, args=(threading.Event(),), name="a_name_of_more_than_15", daemon=True).start()
    if in_c:
        in_c_with_the_gil()
    time.sleep(FOREVER)


def load(ready: threading.Event) -> None:
    ready.wait()


@pytest.mark.parametrize("in_c", [False, True])
def test_threads_are_told_by_name(in_c: bool) -> None:
    context = functions.begin(be_a_halted_thread, (in_c,), 1, "fork")
    try:
        (rank,) = settled(
            context, lambda stacks: [len(thread.frames) for thread in stacks[0].threads] == [1 + in_c, 1, 1]
        )
    finally:
        context.stop(0)
    main, first, second = rank.threads
    assert (main.name, main.frames[0].function) == ("MainThread", "be_a_halted_thread")
    named, loader = sorted([first.name, second.name])
    assert loader == "loader"
    assert named.startswith("a_name_of_more_")  # of which the system keeps 15 bytes
    for thread in (first, second):
        assert (thread.frames[-1].function, thread.waits_for) == ("load", "an event")
    assert "thread loader, waits for an event" in str(rank)


def test_frames_of_libraries_are_shown_when_asked_for() -> None:
    context = functions.begin(take, (nbmp.Queue(),), 1, "fork")
    try:
        (rank,) = settled(context, lambda stacks: function_of(stacks[0]) == "take")
    finally:
        context.stop(0)
    assert rank.main is not None
    assert rank.main.inside is not None
    assert rank.main.inside.file == "nbmp/channels.py"
    assert "nbmp/queue.py" not in rank.text()
    assert "nbmp/queue.py" in rank.text(all_frames=True)
    assert "test_stacks.py" in rank.text(all_frames=True)


def take(rank: int, items: Any) -> None:
    items.get()


def test_other_threads_may_ask_while_one_joins() -> None:
    items = nbmp.Queue()
    context = functions.begin(take, (items,), 2, "fork")
    joining = threading.Thread(target=context.join)
    joining.start()
    try:
        asking = [threading.Thread(target=context.stacks) for _ in range(4)]
        for thread in asking:
            thread.start()
        settled(context, lambda stacks: [function_of(rank) for rank in stacks] == ["take", "take"])
        for thread in asking:
            thread.join()
    finally:
        items.put(None)
        items.put(None)
        joining.join()
    assert context.results == [None, None]


def count_through_waits(rank: int, items: Any, end: int) -> int:
    total = 0
    while total < end:
        try:
            total += items.get(timeout=0.01)
        except queue.Empty:
            time.sleep(0.001)
    return total


def test_rank_that_is_asked_again_and_again_goes_on_as_before() -> None:
    items = nbmp.Queue()
    context = functions.begin(count_through_waits, (items, 200), 1, "fork")
    for _ in range(200):
        items.put(1)
        context.stacks()
    assert context.join()
    assert context.results == [200]


def recurse(depth: int) -> int:
    return recurse(depth - 1) + 1 if depth else 0


def make_classes(rank: int, path: str) -> int:
    """Call and make things all the time: between many of the instructions frames are in disorder."""
    made = 0
    while not os.path.exists(path):
        made += len([type("Made", (), {"value": recurse(depth % 5)}) for depth in range(20)])
    return made


def test_rank_that_works_hard_in_python_survives_any_number_of_questions(tmp_path: Path) -> None:
    context = functions.begin(make_classes, (str(tmp_path / "stop"),), 1, "fork")
    for _ in range(200):
        context.stacks(timeout=10)
    (tmp_path / "stop").touch()
    assert context.join()


def recurse_in_threads(rank: int, path: str) -> None:
    def go_deep() -> None:
        depth = 0
        while not os.path.exists(path):
            depth = (depth + 97) % 900
            recurse(depth)

    threads = [threading.Thread(target=go_deep) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_threads_whose_stacks_change_meanwhile_do_no_harm(tmp_path: Path) -> None:
    context = functions.begin(recurse_in_threads, (str(tmp_path / "stop"),), 1, "fork")
    for _ in range(25):
        context.stacks(timeout=10)
    (tmp_path / "stop").touch()
    assert context.join()


def crash_when_told(rank: int, path: str) -> None:
    functions.wait_for(rank, path)
    ctypes.string_at(0)


def test_stack_of_a_crash_is_not_mixed_with_those_that_were_asked_for(tmp_path: Path) -> None:
    context = functions.begin(crash_when_told, (str(tmp_path / "go"),), 1, "fork")
    settled(context, lambda stacks: "crash_when_told" in str(stacks))
    (tmp_path / "go").touch()
    with pytest.raises(nbmp.ProcessExitedException) as raised:
        context.join()
    assert raised.value.signal_name == "SIGSEGV"
    assert [frame.function for frame in raised.value.failures[0].stack] == ["crash_when_told"]


def test_rank_that_was_asked_and_then_killed_has_no_stack_of_a_crash(tmp_path: Path) -> None:
    context = functions.begin(crash_when_told, (str(tmp_path / "go"),), 1, "fork")
    settled(context, lambda stacks: "crash_when_told" in str(stacks))
    os.kill(context.pids()[0] or 0, signal.SIGKILL)
    with pytest.raises(nbmp.ProcessExitedException) as raised:
        context.join()
    assert raised.value.failures[0].stack == ()


def test_number_that_is_no_rank_is_an_error() -> None:
    context = functions.begin(functions.give, (1,), 2, "fork")
    with pytest.raises(IndexError, match="there is no rank 2: they are numbered 0 to 1"):
        context.stacks([2])
    context.join()
