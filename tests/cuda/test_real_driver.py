"""What the stand-in takes for granted of a driver, asked of a real one."""

from __future__ import annotations

import cupy
import pytest

import nbmp
from nbmp import platforms
from nbmp.cuda import driver
from nbmp.cuda.devices import device_of, uuid_of
from tests.cuda import functions
from tests.cuda.machine import array, event, of_kind, record, side_stream, values, write_late
from tests.waiting import until

pytestmark = [pytest.mark.gpu, pytest.mark.may_keep("descriptors")]


def test_small_allocations_have_each_a_beginning_and_a_handle_of_their_own() -> None:
    first, second = cupy.cuda.Memory(512), cupy.cuda.Memory(512)
    ranges = [driver.address_range(memory.ptr + 100, 0) for memory in (first, second)]
    assert [base for base, _ in ranges] == [first.ptr, second.ptr]
    assert all(size >= 512 for _, size in ranges)
    assert driver.memory_handle(first.ptr, 0) != driver.memory_handle(second.ptr, 0)


def test_only_plain_memory_can_be_exported() -> None:
    assert driver.can_be_exported(array([1]).data.ptr, 0)
    assert not driver.can_be_exported(of_kind("managed", [1]).data.ptr, 0)
    assert not driver.can_be_exported(of_kind("async", [1]).data.ptr, 0)


def test_handles_are_not_opened_in_their_own_process_and_the_device_is_well_after_that() -> None:
    made, done = array([1, 2]), event()
    with pytest.raises(RuntimeError, match="cudaError"):
        driver.open_memory(driver.memory_handle(driver.address_range(made.data.ptr, 0)[0], 0), 0)
    with pytest.raises(RuntimeError, match="cudaError"):
        driver.open_event(driver.event_handle(done.ptr, 0), 0)
    assert values(made) == [1, 2]


def test_event_of_the_default_stream_is_not_done_before_streams_that_wait_for_it() -> None:
    made, done = array([0]), event()
    assert driver.is_done(done.ptr, 0)  # it was never recorded
    write_late(made, [1], 0.05)  # the kernel is loaded from here on
    with side_stream(blocking=True):
        write_late(made, [2], 0.5)
        assert not driver.is_idle(driver.current_stream(0), 0)
    record(done)
    assert not driver.is_done(done.ptr, 0)
    assert until(lambda: driver.is_done(done.ptr, 0))
    assert values(made) == [2]


def test_gpus_that_are_seen_without_cuda_are_those_that_cuda_has() -> None:
    assert len(platforms.visible_gpus()) == driver.device_count()
    assert device_of(uuid_of(0)) == 0
    assert platforms.cuda_user() is not None


def test_each_rank_has_a_gpu_of_its_own() -> None:
    (found,) = nbmp.launch(functions.tell_gpu, (), 1, start_method="spawn", gpus="all")
    assert found == (platforms.visible_gpus()[0], 1, [0])
