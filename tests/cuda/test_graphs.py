"""Streams that are captured into graphs: what is asked of them would be part of the graph, and most of it ends that."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

import nbmp
import nbmp.cuda
from nbmp.cuda import order
from nbmp.cuda.loans import loans
from tests.cuda import functions, standin
from tests.cuda.machine import array, captured_stream, event, values, write_late
from tests.waiting import until


def in_a_thread(work: Callable[[], object]) -> None:
    thread = threading.Thread(target=work)
    thread.start()
    thread.join(60)


def test_put_while_the_current_stream_is_captured_is_refused_and_spoils_nothing(gpu: str) -> None:
    queue, sent = nbmp.Queue(), array([1, 2])
    with captured_stream(), pytest.raises(nbmp.CannotTravelError, match="captured into a CUDA graph"):
        queue.put(sent)
    queue.put(sent)
    assert values(queue.get(timeout=20)) == [1, 2]


def test_get_that_has_to_wait_is_refused_while_the_current_stream_is_captured(gpu: str) -> None:
    queue, sent = nbmp.Queue(), array([0])
    for number in (1, 2):
        write_late(sent, [number], 0.3)
        queue.put(sent)
    with captured_stream(), pytest.raises(nbmp.DeviceError, match="captured into a CUDA graph"):
        queue.get(timeout=20)
    assert values(queue.get(timeout=20)) == [2]


def test_work_of_other_threads_spoils_no_capture(gpu: str) -> None:
    queue, sent, done = nbmp.Queue(), array([0]), event()
    for number in (0, 1):
        write_late(sent, [number], 0.3)
        queue.put((sent, done))
    queue.get(timeout=20)  # whether its event is done is asked from now on
    with captured_stream():
        in_a_thread(nbmp.trim)
        in_a_thread(lambda: queue.put(sent))
    queue.get(timeout=20)
    assert values(queue.get(timeout=20)) == [1]
    del done
    assert until(lambda: not loans.sweep() and not order.tickets.trim())


def test_collect_is_refused_while_the_current_stream_is_captured(gpu: str) -> None:
    array([1])
    with captured_stream(), pytest.raises(nbmp.DeviceError, match="captured into a CUDA graph"):
        nbmp.cuda.ipc_collect()


def test_memory_dropped_during_a_capture_is_given_back_after_it(machine: standin.StandIn) -> None:
    queue, said = nbmp.Queue(), nbmp.Queue()
    context = nbmp.start_processes(functions.produce_once, (queue, said), 1, join=False, start_method="spawn")
    found = queue.get(timeout=60)
    assert said.get(timeout=60) == "put"
    with captured_stream():
        del found
        assert not until(lambda: not said.empty(), 1)
    assert said.get(timeout=60) == "free"
    assert context is not None
    assert context.join(60)
