"""Work on GPUs is asked for, not done: what was asked for before an array was put is done before its receiver looks."""

from __future__ import annotations

import os
import signal
import threading
from typing import Any

import pytest

import nbmp
from nbmp.cuda import driver, order
from tests.cuda import functions, standin
from tests.cuda.asking import Rank
from tests.cuda.machine import array, look, side_stream, values, write, write_late
from tests.waiting import is_running, until


def test_receiver_sees_what_was_asked_for_on_the_senders_stream_before_it_put(gpu: str) -> None:
    rank = Rank(functions.show)
    sent = array([0, 0, 0])
    for number in range(1, 4):
        with side_stream():
            write_late(sent, [number] * 3)
            ((seen, *_),) = rank.ask(sent)
        assert seen == [number] * 3
    rank.end()


def test_receiver_waits_on_its_own_stream_for_a_rank_on_a_side_stream(gpu: str) -> None:
    answers, go = nbmp.Queue(), nbmp.Queue()
    context = nbmp.start_processes(functions.make_late, (answers, go), 1, join=False, start_method="spawn")
    with side_stream():
        found = answers.get(timeout=60)
        assert values(found) == [1, 2, 3]
    del found
    go.put(None)
    assert context is not None
    assert context.join(60)


def test_put_and_get_wait_for_nothing(machine: standin.StandIn) -> None:
    queue = nbmp.Queue()
    sent, held = array([1]), threading.Event()
    machine.stream(0).put(held.wait)
    queue.put(sent)
    found = queue.get(timeout=20)
    assert not machine.is_idle(0, 0)
    held.set()
    assert values(found) == [1]


def test_no_event_travels_when_nothing_is_asked_for(machine: standin.StandIn) -> None:
    queue = nbmp.Queue()
    for _ in range(3):
        queue.put(array([1]))
        assert order.tickets.trim() == 0  # although the message is not read yet
        queue.get(timeout=20)


def test_default_stream_is_followed_with_all_that_it_waits_for(gpu: str) -> None:
    rank = Rank(functions.show)
    sent = array([0, 0])
    rank.ask(sent)  # it is quick from here on
    with side_stream(blocking=True):
        write_late(sent, [1, 2], 0.5)
    assert rank.ask(sent)[0][0] == [1, 2]
    rank.end()


class AsksWhilePickled:
    """Arrives as a list with the array; has it written late when it is pickled."""

    def __init__(self, array: Any) -> None:
        self.array = array

    def __reduce__(self) -> tuple[Any, ...]:
        write_late(self.array, [5, 6], 0.3)
        return list, ([self.array],)


def test_work_that_is_asked_for_while_a_message_is_made_is_waited_for(gpu: str) -> None:
    queue = nbmp.Queue()
    first, second, third = array([1]), array([0, 0]), array([0, 0])
    for busy in (False, True):
        if busy:
            write_late(first, [2], 0.1)
        with side_stream():
            queue.put([first, AsksWhilePickled(second), AsksWhilePickled(third)])
        found, (other,), (another,) = queue.get(timeout=20)
        assert (values(other), values(another)) == ([5, 6], [5, 6])
        write(second, 0)
        write(third, 0)
        del found, other, another


def test_process_that_passes_on_what_it_works_on_ends_when_that_was_received(gpu: str) -> None:
    rank = Rank(functions.work_and_pass_on)
    sent = array([0, 0])
    rank.requests.put(sent)
    pid = rank.pid
    assert not until(lambda: not is_running(pid), 1.5)
    found = rank.answers.get(timeout=60)
    assert found.data.mem is sent.data.mem
    assert values(found) == [5, 5]
    assert rank.context is not None
    assert rank.context.join(60)


def test_work_that_ended_with_its_process_is_not_taken_for_done(gpu: str) -> None:
    rank = Rank(functions.work_and_pass_on)
    rank.requests.put((array([0, 0]), 5))
    pid = rank.pid
    assert until(lambda: not rank.answers.empty())
    os.kill(pid, signal.SIGKILL)
    assert until(lambda: not is_running(pid))
    with pytest.raises(nbmp.DeviceError, match=f"an event of process {pid} .* that process has ended"):
        rank.answers.get(timeout=60)
    with pytest.raises(nbmp.ProcessExitedException):
        rank.context.join(60)  # type: ignore[union-attr]


def test_arrays_of_one_message_share_an_event_and_events_are_used_again(machine: standin.StandIn) -> None:
    rank = Rank(functions.show)
    first, second = array([1]), array([2])
    for _ in range(5):
        write_late(first, [3], 0.05)
        assert [one[0] for one in rank.ask([first, second, first])] == [[3], [2], [3]]
    assert len(machine.noted("events")) == 1
    rank.end()


def test_event_of_a_message_that_nobody_reads_is_free_again(machine: standin.StandIn) -> None:
    sent = array([1])
    for _ in range(3):
        queue = nbmp.Queue()
        write_late(sent, [2], 0.05)
        queue.put(sent)
        queue.close()
        del queue
        machine.finish(0)
    assert until(lambda: order.tickets.trim() == 0)
    assert len(machine.noted("events")) == 1


def test_put_waits_for_the_gpu_when_very_many_events_are_under_way(
    machine: standin.StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(order, "MOST", 2)
    queue, sent = nbmp.Queue(), array([0])
    for number in (1, 2, 3):
        assert machine.is_idle(0, 0) is (number == 1)
        write_late(sent, [number], 0.3)
        queue.put(sent)
    assert machine.is_idle(0, 0)
    assert len(machine.noted("events")) == 2
    assert [values(queue.get(timeout=20)) for _ in range(3)] == [[3]] * 3


def test_put_waits_for_the_gpu_where_the_driver_gives_no_event(
    machine: standin.StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(event: int, device: int) -> bytes:
        raise standin.DriverError("cudaErrorNotSupported: operation not supported")

    monkeypatch.setattr(driver, "event_handle", refuse)
    queue, sent = nbmp.Queue(), array([0])
    write_late(sent, [1], 0.3)
    queue.put(sent)
    assert machine.is_idle(0, 0)
    assert values(queue.get(timeout=20)) == [1]
    assert not list(machine.folder.glob("event-*"))


def test_event_is_not_used_again_before_it_is_done(machine: standin.StandIn) -> None:
    sent = array([1])
    for _ in range(2):
        queue = nbmp.Queue()
        write_late(sent, [2], 1.0)
        queue.put(sent)
        queue.close()
        del queue
    assert len(machine.noted("events")) == 2
    machine.finish(0)


def test_event_is_not_used_again_before_its_message_is_read(machine: standin.StandIn) -> None:
    queue, sent = nbmp.Queue(), array([1])
    for number in (1, 2):
        write_late(sent, [2], 0.05)
        queue.put(sent)
        machine.finish(0)
        assert len(machine.noted("events")) == number
    assert [values(queue.get(timeout=20)) for _ in range(2)] == [[2], [2]]


def test_get_in_the_same_process_waits_for_the_stream_that_put(gpu: str) -> None:
    queue = nbmp.Queue()
    sent = array([0, 0])
    with side_stream():
        write_late(sent, [1, 2])
        queue.put(sent)
    assert values(queue.get(timeout=20)) == [1, 2]


def test_block_is_not_given_back_while_the_consumers_work_on_it_runs(machine: standin.StandIn) -> None:
    rank = Rank(functions.work_and_drop)
    sent = array([0, 0])
    assert rank.ask(sent) == "dropped"
    from nbmp.cuda.loans import loans

    assert until(lambda: not loans.sweep())
    assert look(sent).tolist() == [5, 5]
    rank.end()


def test_order_is_that_of_the_putting_thread_also_when_a_feeder_sends(gpu: str) -> None:
    queue: Any = nbmp.Queue()
    filler = b"x" * 60_000
    sent = array([0])
    for _ in range(100):  # the channel is full then
        queue.put(filler)
    with side_stream():
        write_late(sent, [7])
        queue.put(sent)
    for _ in range(100):
        queue.get(timeout=20)
    assert values(queue.get(timeout=20)) == [7]


def test_event_is_not_destroyed_before_its_message_is_read(machine: standin.StandIn) -> None:
    queue, sent = nbmp.Queue(), array([1])
    write_late(sent, [2], 0.05)
    queue.put(sent)
    machine.finish(0)  # the event is done
    nbmp.trim()
    assert order.tickets.trim() == 1
    found = queue.get(timeout=20)
    assert values(found) == [2]
    del found
    assert until(lambda: order.tickets.trim() == 0)
