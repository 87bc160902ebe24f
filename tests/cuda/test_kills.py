"""SIGKILL at any moment: what the killed process held is free, what it sent and lived for is whole."""

from __future__ import annotations

import gc
import os
import random
import signal
import time
from queue import Empty

import pytest

import nbmp
from nbmp.cuda import received
from nbmp.cuda.loans import loans
from tests.cuda import functions, standin
from tests.cuda.asking import Rank
from tests.cuda.machine import array, neighbours, values
from tests.waiting import is_running, until

ROUNDS = 5


def kill(rank: Rank, after: float) -> None:
    pid = rank.pid
    time.sleep(after)
    os.kill(pid, signal.SIGKILL)
    assert until(lambda: not is_running(pid))
    assert rank.context is not None
    rank.context.stop(0)  # not joined: the traceback would hold the queues in a circle


def is_free() -> bool:
    gc.collect()
    return not loans.sweep()


def test_consumers_killed_anywhere_leave_every_block_free(gpu: str) -> None:
    chance = random.Random(1)
    for _ in range(ROUNDS):
        rank = Rank(functions.take_for_ever)
        for number in range(30):
            rank.requests.put([array([number] * 3), *neighbours([number], [number])])
        assert rank.answers.get(timeout=60) == 0
        kill(rank, chance.uniform(0, 0.05))
        del rank
        assert until(is_free)


def test_consumers_killed_one_after_the_other_leave_the_rest_of_the_queue_to_the_next(gpu: str) -> None:
    queue, answers = nbmp.Queue(), nbmp.Queue()
    for number in range(60):
        queue.put(array([number]))
    seen: list[int] = []
    for _ in range(3):
        context = nbmp.start_processes(functions.take_for_ever, (queue, answers), 1, join=False, start_method="spawn")
        assert context is not None
        seen.append(answers.get(timeout=60))
        context.stop(0)
    while True:
        try:
            seen.append(values(queue.get(timeout=0.5))[0])
        except Empty:
            break
    while not answers.empty():
        seen.append(answers.get(timeout=20))
    assert len(seen) == len(set(seen))  # none came twice
    assert len(seen) >= 60 - 3  # and no more are lost than were being taken
    assert until(is_free)


@pytest.mark.violates("freed that process")
def test_producers_killed_anywhere_leave_messages_that_are_whole_or_refused(gpu: str) -> None:
    chance, refusals = random.Random(2), {True}
    for _ in range(ROUNDS):
        rank = Rank(functions.put_for_ever)
        kept = rank.answers.get(timeout=60)
        assert len(set(values(kept))) == 1
        kill(rank, chance.uniform(0, 0.05))
        while True:
            try:
                found = rank.answers.get(timeout=0.2)
            except Empty:
                break
            except nbmp.DeviceError as error:
                refusals.add("has ended" in str(error))
                error.__traceback__ = None
            else:
                assert len(set(values(found))) == 1
                del found
        del kept
        assert until(lambda: not received.blocks())
    assert refusals == {True}


def test_third_process_killed_while_it_holds_what_was_sent_on(gpu: str) -> None:
    last = Rank(functions.hold)
    middle = nbmp.Queue()
    context = nbmp.start_processes(functions.pass_on, (middle, last.requests), 1, join=False, start_method="forkserver")
    middle.put(array([1, 2]))
    pid, seen = last.answers.get(timeout=60)
    assert seen == [1, 2]
    assert not until(lambda: not loans.sweep(), 1)
    os.kill(pid, signal.SIGKILL)
    assert until(lambda: not is_running(pid))
    assert until(is_free)
    middle.put(None)
    assert context is not None
    assert context.join(60)
    with pytest.raises(nbmp.ProcessExitedException):
        last.context.join(60)  # type: ignore[union-attr]


@pytest.mark.usefixtures("no_callbacks_of_the_collector")
def test_interrupted_get_loses_no_lease(machine: standin.StandIn) -> None:
    """KeyboardInterrupt at moments all over a get: afterwards everything is free, and nothing was broken."""
    rank = Rank(functions.put_for_ever)
    rank.answers.get(timeout=60)
    got = interrupted = 0
    chance = random.Random(3)
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        while interrupted < 50:
            try:
                signal.setitimer(signal.ITIMER_REAL, chance.uniform(0.0001, 0.01))
                while True:
                    found = rank.answers.get(timeout=60)
                    got += 1
                    del found
            except KeyboardInterrupt:
                interrupted += 1
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
    finally:
        signal.signal(signal.SIGALRM, before)
    rank.context.stop(0)  # type: ignore[union-attr]
    assert got > 0
    assert until(lambda: not received.blocks())
    received.settle()
