"""What tests and their ranks do with arrays on a GPU: on a real one, or on the stand-in where the environment names it.

Ranks import this by the functions that they run, before anything is unpickled that needs the stand-in.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import cupy
import numpy as np
import pytest

from nbmp.cuda import driver
from tests.cuda import standin

Values = Any


def is_stand_in() -> bool:
    return standin.FOLDER in os.environ


def array(values: Values, device: int = 0) -> Any:
    """Return a CuPy array with these values, in an allocation of its own on the stand-in."""
    host = np.asarray(values)
    if is_stand_in():
        return driver.from_host(host, device)
    with cupy.cuda.Device(device):
        made = cupy.asarray(host)
    cupy.cuda.runtime.deviceSynchronize()
    return made


def neighbours(*many: Values) -> list[Any]:
    """Return arrays that are blocks of one allocation of the driver's, as those of CuPy's pool are."""
    hosts = [np.asarray(values) for values in many]
    if not is_stand_in():
        whole = cupy.cuda.Memory(512 * len(hosts))
        return [_filled(cupy.cuda.UnownedMemory(whole.ptr + 512 * i, 512, whole), h) for i, h in enumerate(hosts)]
    assert standin.machine is not None
    whole = standin.machine.allocate(512 * len(hosts)).mem
    return [_filled(cupy.cuda.UnownedMemory(whole.ptr + 512 * i, 512, whole, 0), h) for i, h in enumerate(hosts)]


def of_kind(kind: str, values: Values) -> Any:
    """Return an array in memory that cannot be exported: `managed`, or of a stream-ordered pool (`async`)."""
    host = np.asarray(values)
    if is_stand_in():
        assert standin.machine is not None
        made = cupy.ndarray(host.shape, host.dtype, standin.machine.allocate(host.nbytes, kind=kind))
        standin.seen(made)[...] = host
        return made
    try:
        memory = cupy.cuda.malloc_managed(host.nbytes) if kind == "managed" else cupy.cuda.malloc_async(host.nbytes)
    except RuntimeError as error:
        pytest.skip(f"there is no such memory here: {error}")
    made = cupy.ndarray(host.shape, host.dtype, memory)
    made.set(host)
    cupy.cuda.runtime.deviceSynchronize()
    return made


def _filled(memory: Any, host: np.ndarray[Any, Any]) -> Any:
    made = cupy.ndarray(host.shape, host.dtype, cupy.cuda.MemoryPointer(memory, 0))
    write(made, host)
    return made


def values(array: Any) -> list[Any]:
    """Return the elements as a list, when the current stream has done its work."""
    return look(array).tolist()  # type: ignore[no-any-return]


def look(array: Any) -> np.ndarray[Any, Any]:
    device = array.data.device_id
    driver.synchronize(driver.current_stream(device), device)
    if is_stand_in():
        return standin.seen(array).copy()
    with cupy.cuda.Device(device):
        return np.asarray(array.get())


def write(array: Any, values: Values) -> None:
    """Set all elements, and wait until that is done."""
    if is_stand_in():
        standin.seen(array)[...] = values
        return
    host = np.array(np.broadcast_to(values, array.shape), array.dtype)
    with cupy.cuda.Device(array.data.device_id):
        if array.flags.c_contiguous:
            array.set(host)  # which no kernel has to be compiled for
        else:
            array[...] = cupy.asarray(host)
        cupy.cuda.runtime.deviceSynchronize()


def write_late(array: Any, values: Values, seconds: float = 0.2) -> None:
    """Have the current stream set all elements, four integers at most, after a while; return at once."""
    if is_stand_in():
        assert standin.machine is not None
        target = standin.seen(array)  # which does not keep the array, as work on a GPU does not

        def work() -> None:
            time.sleep(seconds)
            target[...] = values

        standin.machine.stream(standin.machine.current_stream(0)).put(work)
        return
    assert array.dtype == np.int64
    assert array.flags.c_contiguous
    numbers = np.broadcast_to(values, array.shape).ravel().tolist()
    scalars = map(np.int64, (len(numbers), *numbers, *[0] * (_FEW - len(numbers))))
    _late()((1,), (1,), (np.int64(seconds * 1e9), array, *scalars))


_FEW = 4
_LATE = """
extern "C" __global__ void late(long long nanoseconds, long long *target, long long count,
                                long long a, long long b, long long c, long long d) {
    long long begun, now, values[] = {a, b, c, d};
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(begun));
    do { asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now)); } while (now - begun < nanoseconds);
    for (int i = 0; i < count; i++) target[i] = values[i];
}
"""


@cache
def _late() -> Any:
    """Return the only kernel of work that is late: a second one is loaded when the first is done.

    So would be a copy from the host, or memory for it.
    """
    return cupy.RawKernel(_LATE, "late")


@contextlib.contextmanager
def side_stream(*, blocking: bool = False) -> Iterator[None]:
    """Have another current stream than the default one, which waits for it when it is `blocking`."""
    if is_stand_in():
        assert standin.machine is not None
        with standin.machine.on_stream(standin.BLOCKING if blocking else standin.SIDE):
            yield
    else:
        with _stream(not blocking):
            yield


@cache
def _stream(non_blocking: bool) -> Any:
    """Return a stream of this process. It stays: what waits for a stream that was destroyed is vague."""
    return cupy.cuda.Stream(non_blocking=non_blocking)


@contextlib.contextmanager
def captured_stream() -> Iterator[None]:
    """Have a current stream that is captured into a graph; fails in the end when that was spoilt."""
    with side_stream():
        if is_stand_in():
            assert standin.machine is not None
            with standin.machine.capturing(standin.SIDE):
                yield
            return
        stream = cupy.cuda.get_current_stream()
        stream.begin_capture(cupy.cuda.runtime.streamCaptureModeGlobal)
        try:
            yield
        finally:
            stream.end_capture()


def event() -> Any:
    """Return an event for other processes."""
    if not is_stand_in():
        return cupy.cuda.Event(disable_timing=True, interprocess=True)
    made = cupy.cuda.Event.__new__(cupy.cuda.Event)
    made.ptr = Pointer(driver.new_event(0))
    return made


class Pointer(int):
    """The address of an event of the stand-in: not one that CuPy may destroy."""

    def __bool__(self) -> bool:
        return False


def record(event: Any) -> None:
    """Record an event on the current stream."""
    driver.record(event.ptr, driver.current_stream(0), 0)


def wait_for(event: Any) -> None:
    """Have the current stream wait for an event."""
    driver.wait_for(event.ptr, driver.current_stream(0), 0)


def sum_of(arrays: Sequence[Any]) -> float:
    return float(sum(look(array).sum() for array in arrays))
