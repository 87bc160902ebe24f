"""Memory that has no handle is copied once, on the GPU, and that is said at debug level."""

from __future__ import annotations

import logging

import numpy as np
import pytest

import nbmp
from tests.cuda import functions, standin
from tests.cuda.asking import Rank
from tests.cuda.machine import array, of_kind, side_stream, values, write, write_late
from tests.waiting import until

KINDS = ("managed", "async")


@pytest.mark.parametrize("kind", KINDS)
def test_memory_that_cannot_be_exported_is_sent_as_a_copy_and_said_so(
    gpu: str, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    rank = Rank(functions.show)
    sent = of_kind(kind, np.arange(12).reshape(3, 4))
    with caplog.at_level(logging.DEBUG, "nbmp"):
        for view in (sent, sent[::-1, 1:3], sent.T, sent[1, 2]):
            ((seen, shape, *_),) = rank.ask(view)
            assert (seen, shape) == (values(view), view.shape)
    copies = [entry.getMessage() for entry in caplog.records if "is sent as a copy" in entry.getMessage()]
    assert len(copies) == 4
    assert "(96 bytes on the GPU)" in copies[0]
    assert "(80 bytes on the GPU)" in copies[1]
    rank.end()


def test_copy_is_made_once_and_after_what_was_asked_for(machine: standin.StandIn) -> None:
    rank = Rank(functions.show)
    rank.ask(array([0]))  # it is quick from here on
    sent = of_kind("managed", [1, 2, 3])
    write_late(sent, [4, 5, 6])
    assert [one[0] for one in rank.ask([array([0]), sent])] == [[0], [4, 5, 6]]
    assert len(machine.noted("copies")) == 1
    rank.end()


def test_copy_is_a_snapshot_and_is_free_when_it_was_dropped(gpu: str) -> None:
    from nbmp.cuda.loans import loans

    rank = Rank(functions.hold_until_told)
    sent = of_kind("managed", [1, 2, 3])
    assert rank.ask(sent) == "held"
    write(sent, 9)
    assert rank.ask("look") == [1, 2, 3]
    assert rank.answers.get(timeout=60) == "dropped"
    assert until(lambda: not loans.sweep())
    rank.end()


def test_result_of_a_pool_is_copied_once_on_the_gpu(machine: standin.StandIn) -> None:
    with nbmp.get_context("forkserver").Pool(1, functions.get_ready) as pool, side_stream():
        found = pool.apply(functions.double, (array([[1, 2], [3, 4]]),))
        assert values(found) == [[2, 4], [6, 8]]  # complete on whatever stream
    assert len(machine.noted("copies")) == 1


def test_result_of_a_rank_comes_through_the_host(machine: standin.StandIn) -> None:
    (found,) = nbmp.launch(functions.make_on, (0,), 1, start_method="forkserver")
    assert values(found) == [1, 2, 3]
    assert machine.noted("opens") == machine.noted("copies") == []  # nothing of the rank's is needed any more


def test_memory_that_the_driver_refuses_is_refused_with_the_way_out(machine: standin.StandIn) -> None:
    from nbmp.cuda import driver

    def refuse(base: int, device: int) -> bytes:
        raise standin.DriverError("cudaErrorNotSupported: operation not supported")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(driver, "memory_handle", refuse)
        with pytest.raises(nbmp.CannotTravelError, match=r"cudaErrorNotSupported.*cupy\.asnumpy"):
            nbmp.Queue().put(array([1]))
