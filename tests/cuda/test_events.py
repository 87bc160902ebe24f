"""`cupy.cuda.Event` objects between processes."""

from __future__ import annotations

import gc
from typing import Any

import cupy
import pytest

import nbmp
from nbmp.cuda import driver
from nbmp.cuda.loans import loans
from tests.cuda import functions, standin
from tests.cuda.asking import Rank
from tests.cuda.machine import array, event, record, side_stream, values, wait_for, write_late
from tests.waiting import until


def test_child_works_on_its_own_stream_after_the_parents_event_and_records_it_anew(gpu: str) -> None:
    rank = Rank(functions.double_after)
    sent, done = array([0, 0]), event()
    with side_stream():
        write_late(sent, [1, 2], 0.3)
        record(done)
    assert rank.ask((sent, done)) == "asked for"
    wait_for(done)
    assert values(sent) == [2, 4]
    rank.end()


def test_event_given_as_an_argument_makes_the_child_wait(gpu: str) -> None:
    sent, done = array([0]), event()
    with side_stream():
        write_late(sent, [1], 1.0)
        record(done)
    assert nbmp.launch(functions.look_after, (done, sent), 1, start_method="spawn") == [[1]]


def test_event_may_be_opened_before_it_is_recorded(gpu: str) -> None:
    rank = Rank(functions.wait_when_told)
    sent, done = array([0]), event()
    assert rank.ask((done, sent)) == "opened"
    with side_stream():
        write_late(sent, [3], 0.3)
        record(done)
    assert rank.ask("now") == [3]
    rank.end()


def test_event_in_the_same_process_is_the_same_object(gpu: str) -> None:
    queue = nbmp.Queue()
    sent = event()
    queue.put([sent, sent])
    first, second = queue.get(timeout=20)
    assert first is sent
    assert second is sent


def test_received_event_is_sent_on_and_comes_home(gpu: str) -> None:
    there, back = nbmp.Queue(), nbmp.Queue()
    context = nbmp.start_processes(functions.pass_on, (there, back), 1, join=False, start_method="forkserver")
    sent = event()
    there.put(sent)
    assert back.get(timeout=60) is sent
    there.put(None)
    assert context is not None
    assert context.join(60)


def test_event_is_kept_while_somebody_may_use_it(gpu: str) -> None:
    queue: Any = nbmp.Queue()
    queue.put(event())
    gc.collect()
    assert len(list(loans)) == 1
    queue.close()
    del queue
    gc.collect()
    assert until(lambda: not loans.sweep())


def test_event_is_kept_until_it_is_done(machine: standin.StandIn) -> None:
    queue, sent, target = nbmp.Queue(), event(), array([0])
    write_late(target, [1], 1.0)
    record(sent)
    queue.put(sent)
    queue.close()
    del queue, sent
    gc.collect()
    assert loans.sweep() == 1  # whoever had received it might still be waiting
    machine.finish(0)
    assert until(lambda: not loans.sweep())


def test_event_that_was_not_made_for_other_processes_is_refused(machine: standin.StandIn) -> None:
    def refuse(event: int, device: int) -> bytes:
        raise standin.DriverError("cudaErrorInvalidResourceHandle: invalid resource handle")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(driver, "event_handle", refuse)
        with pytest.raises(nbmp.CannotTravelError, match="interprocess=True") as caught:
            nbmp.Queue().put(event())
    assert isinstance(caught.value.__cause__, nbmp.DeviceError)


@pytest.mark.gpu
@pytest.mark.may_keep("descriptors")
def test_real_event_that_was_not_made_for_other_processes_is_refused() -> None:
    with pytest.raises(nbmp.CannotTravelError, match="interprocess=True"):
        nbmp.Queue().put(cupy.cuda.Event())
