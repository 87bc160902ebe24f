"""Queues: what is put arrives, whole, once and in order, whatever it is and whoever dies."""

from __future__ import annotations

import os
import queue
import threading
from typing import Any

import numpy as np
import pytest

import nbmp
from tests.channels import functions

KINDS = [
    np.array(3.5),
    np.zeros((0, 3), "i2"),
    np.array(["2020-01-01", "NaT"], "M8[D]"),
    np.array([1, 2], "m8[ms]"),
    np.arange(4, dtype=">f8"),
    np.array([True, False]),
    np.array(["ab", "c"], "U3"),
    np.array([b"x", b"yy"], "S2"),
    np.zeros(3, [("t", "M8[s]"), ("v", ">f4", (2,))]),
    np.zeros(2, np.dtype({"names": ["a"], "formats": ["i4"], "offsets": [4], "itemsize": 12})),
    np.arange(3, dtype="c16"),
    np.zeros(5, "V7"),
    np.asfortranarray(np.arange(60_000.0).reshape(300, 200)),
    np.arange(60_000.0)[::-2],
    np.arange(200_000, dtype="u1"),
]


def pair() -> tuple[nbmp.Queue, nbmp.Queue]:
    return nbmp.Queue(), nbmp.Queue()


def same(a: Any, b: Any) -> bool:
    return bool(a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes())


def test_arrays_of_every_kind_arrive_equal(method: str) -> None:
    requests, answers = pair()
    context = nbmp.start_processes(functions.echo, (requests, answers), join=False, start_method=method)
    for array in KINDS:
        requests.put(array)
    for array in KINDS:
        assert same(answers.get(timeout=20), array), array.dtype
    requests.put(None)
    assert context is not None
    assert context.join(20)


def test_functions_and_classes_of_main_travel_by_value() -> None:
    requests, _ = pair()
    requests.put(lambda x: x + 1)
    assert requests.get(timeout=5)(1) == 2


def test_private_array_is_a_snapshot_of_the_moment_of_put() -> None:
    for size in (10, 100_000):
        q, _ = pair()
        array = np.zeros(size)
        q.put(array)
        array[:] = 1
        arrived = q.get(timeout=5)
        assert arrived.sum() == 0
        assert arrived.flags.writeable
        assert not nbmp.is_shared(arrived)
        arrived[:] = 2
        assert array[0] == 1


def test_read_only_array_stays_read_only() -> None:
    for size in (10, 100_000):
        q, _ = pair()
        array = np.zeros(size)
        array.flags.writeable = False
        q.put(array)
        assert not q.get(timeout=5).flags.writeable


def test_shared_array_is_the_same_memory_and_two_views_still_overlap(method: str) -> None:
    requests, answers = pair()
    big = nbmp.zeros((1000, 1000))
    for pick in (np.s_[10:14, ::250], np.s_[::-1, 3:4], np.s_[5:6, :]):
        big[:] = 0
        view = big[pick]
        requests.put((view, view[:1]))
        nbmp.start_processes(functions.fill_first, (requests, answers), start_method=method)
        assert answers.get(timeout=5) == (5, view.strides)
        back = answers.get(timeout=5)
        assert view[0, 0] == 5
        back[0, 0] = 6
        assert view[0, 0] == 6
        assert np.shares_memory(back, big)


def test_put_and_get_in_one_process_give_the_same_shared_memory() -> None:
    q, _ = pair()
    array = nbmp.zeros(50_000)
    q.put((array, array[2:4]))
    first, second = q.get(timeout=5)
    assert np.shares_memory(first, array)
    assert np.shares_memory(second, array[2:4])


def test_producer_may_end_before_anything_is_taken(method: str) -> None:
    q, second = pair()
    items = [np.full(100_000, i) for i in range(20)]
    nbmp.start_processes(functions.produce, (q, items), start_method=method)
    for i in range(20):
        assert (q.get(timeout=5) == i).all()
    q.put(np.zeros(50_000))
    nbmp.start_processes(functions.hop, (q, second), start_method=method)
    nbmp.start_processes(functions.hop, (second, q), start_method=method)
    assert (q.get(timeout=5) == 2).all()


def test_what_cannot_be_pickled_is_the_callers_error_and_the_queue_goes_on() -> None:
    q, _ = pair()
    with pytest.raises(nbmp.CannotTravelError, match="lock"):
        q.put({"a": 1, "lock": threading.Lock()})
    q.put([1])
    assert q.get(timeout=5) == [1]
    assert q.empty()


class Trap:
    """Cannot be rebuilt."""

    def __reduce__(self) -> tuple[Any, ...]:
        return int, ("not a number",)


def test_item_that_cannot_be_unpickled_is_told_once_and_the_next_one_comes() -> None:
    q, _ = pair()
    q.put(Trap())
    q.put("next")
    with pytest.raises(ValueError, match="not a number"):
        q.get(timeout=5)
    assert q.get(timeout=5) == "next"


def test_reader_killed_inside_get_blocks_nobody(method: str) -> None:
    q, ready = pair()
    context = nbmp.start_processes(functions.wait_in_get, (q, ready), join=False, start_method=method)
    assert context is not None
    os.kill(ready.get(timeout=20), 9)
    with pytest.raises(nbmp.ProcessExitedException):
        context.join(5)
    q.put("x")
    assert q.get(timeout=5) == "x"


def test_backlog_keeps_the_order_and_is_sent_before_the_exit(method: str) -> None:
    q, _ = pair()
    items = [(i, "x" * 5_000) for i in range(3_000)]  # more than a socket holds
    context = nbmp.start_processes(functions.produce, (q, items), join=False, start_method=method)
    assert context is not None
    assert [q.get(timeout=20)[0] for _ in range(3_000)] == list(range(3_000))
    assert context.join(20)


def test_empty_full_and_timeouts_are_as_the_standard_librarys() -> None:
    q = nbmp.Queue(2)
    assert q.empty()
    assert not q.full()
    q.put(1)
    q.put(2)
    assert q.full()
    assert q.qsize() == 2
    with pytest.raises(queue.Full):
        q.put(3, timeout=0.05)
    with pytest.raises(queue.Full):
        q.put_nowait(3)
    assert [q.get_nowait(), q.get()] == [1, 2]
    assert not q.full()
    with pytest.raises(queue.Empty):
        q.get_nowait()
    with pytest.raises(queue.Empty):
        q.get(timeout=0.05)


def test_put_that_waits_goes_on_when_a_slot_is_given_back() -> None:
    q = nbmp.Queue(1)
    q.put("first")
    waiting = threading.Thread(target=q.put, args=("second",))
    waiting.start()
    assert q.get(timeout=5) == "first"
    assert q.get(timeout=5) == "second"
    waiting.join(5)
    assert not waiting.is_alive()


def test_slot_of_a_killed_consumer_is_given_back(method: str) -> None:
    q, taken = nbmp.Queue(2), nbmp.Queue()
    numbers = iter(range(1_000_000))
    for _ in range(5):
        context = nbmp.start_processes(functions.take_for_ever, (q, taken), join=False, start_method=method)
        assert context is not None
        for _ in range(5):
            q.put(next(numbers), timeout=20)
        taken.get(timeout=20)
        os.kill(context.processes[0].pid or 0, 9)
        with pytest.raises(nbmp.ProcessExitedException):
            context.join(5)
    while not q.empty():
        q.get(timeout=5)
    for _ in range(2):
        q.put("room", timeout=5)


def test_closed_queue_says_so() -> None:
    q, _ = pair()
    with pytest.raises(ValueError, match="close the queue"):
        q.join_thread()
    q.close()
    q.join_thread()
    with pytest.raises(ValueError, match="closed"):
        q.put(1)
    with pytest.raises(ValueError, match="closed"):
        q.get()


def test_joinable_queue_waits_for_all_tasks(method: str) -> None:
    q = nbmp.JoinableQueue()
    for i in range(6):
        q.put(i)
    context = nbmp.start_processes(functions.finish_tasks, (q, 3), 2, join=False, start_method=method)
    q.join()
    assert context is not None
    assert context.join(20)
    with pytest.raises(ValueError, match="too many"):
        q.task_done()


def test_queue_travels_through_a_queue(method: str) -> None:
    outer, inner = nbmp.SimpleQueue(), nbmp.SimpleQueue()
    outer.put(inner)
    nbmp.start_processes(functions.pass_queue_on, (outer,), start_method=method)
    assert inner.get() == "through both"


def test_six_hundred_shared_arrays_in_one_message() -> None:
    q, _ = pair()
    arrays = [nbmp.full(10_000, i) for i in range(300)]
    q.put(arrays)
    arrived = q.get(timeout=20)
    assert all(np.shares_memory(a, b) for a, b in zip(arrived, arrays, strict=True))
