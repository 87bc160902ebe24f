"""The sending side: CuPy arrays and events in a pickle.

    array          by handle: its place in an allocation of the driver's, and a lease on its memory
    no elements    shape and dtype
    result         of a rank: through the host, since the rank ends; of a pool: marked, so that the receiver copies it
    event          by handle, with a lease

An allocation is the driver's: that of an array out of CuPy's pool holds others too. Its handle leads to its beginning,
so the place in it travels along. A block is what CuPy's memory object of the array is: a piece of CuPy's pool, kept as
a whole as long as any array in it is lent.
"""

import logging
import os
from typing import Any

import cupy

from nbmp.cuda import arriving, driver
from nbmp.cuda.devices import uuid_of
from nbmp.cuda.exiting import wait_at_exit
from nbmp.cuda.loans import Told, another, loans
from nbmp.cuda.order import moment
from nbmp.cuda.received import Allocation, Use, around, owned_by
from nbmp.errors import DeviceError
from nbmp.memory.segment import human
from nbmp.memory.weakly import WeakTable
from nbmp.pickling.arrays import dtype_text
from nbmp.pickling.luggage import Luggage, current_luggage
from nbmp.pickling.parcel import Held

_log = logging.getLogger("nbmp")

Reduced = tuple[Any, ...]


class _Block:
    """A block that one message lends; pickled once in it, however many arrays there are in the block."""

    def __init__(self, start: int, index: int, about: tuple[Any, ...], memory: Any) -> None:
        self.start = start
        self.memory = memory
        self._fields = index, about

    def __reduce__(self) -> Reduced:
        return arriving.block, self._fields


def reduce_array(array: Any) -> Reduced:
    """Return how to pickle a CuPy array."""
    luggage = current_luggage(array)
    driver.check_fork()
    device = array.data.device_id
    kind = dtype_text(array.dtype) or array.dtype
    if not array.size:
        return arriving.empty, (uuid_of(device), array.shape, kind)
    driver.refuse_capture(driver.current_stream(device), device)
    with driver.beside_captures():
        return _reduced(luggage, array, kind)


def _reduced(luggage: Luggage, array: Any, kind: Any) -> Reduced:
    device = array.data.device_id
    use = owned_by(array.data.mem) or around(array.data.ptr)
    if use is None and luggage.farewell:
        return arriving.from_host, (driver.to_host(array), uuid_of(device))
    wait_at_exit()
    if use is None and not driver.can_be_exported(array.data.ptr, device):
        array = _exportable(array)
    block = _block(luggage, array, use)
    order = moment(luggage, device)
    place = array.data.ptr - block.start, array.shape, array.strides, kind
    return arriving.array, (block, order, luggage.to_main, *place)


def _block(luggage: Luggage, array: Any, use: Use | None) -> _Block:
    """Return the block of this array, which this message lends once."""
    memory: Any = array.data.mem if use is None else use
    found: _Block | None = luggage.notes.get(id(memory))
    if found is None:
        if use is None:
            about, lease = loans.lend(memory, lambda: _about(array))
            start = memory.ptr
        else:
            about, lease = use.about, another(use.lease)
            start = use.base + about[-2]
        found = luggage.notes[id(memory)] = _Block(start, luggage.add(Held(lease)), about, memory)
    return found


def _about(array: Any) -> Told:
    """Return what receivers are told of the block of an array: the allocation, and where in it the block lies."""
    memory, device = array.data.mem, array.data.device_id
    base, size = driver.address_range(array.data.ptr, device)
    exported = _exported.get((device, base)) or _exported.put((device, base), _Exported(base, device))
    allocation = Allocation(exported.handle, size, uuid_of(device), os.getpid())
    return Told((*allocation, memory.ptr - base, memory.size), exported)


class _Exported:
    """An allocation of which something is lent. It has one handle meanwhile, by which receivers know it.

    The driver's answers may differ in bytes that mean nothing.
    """

    __slots__ = ("__weakref__", "handle")

    def __init__(self, base: int, device: int) -> None:
        try:
            self.handle = driver.memory_handle(base, device)
        except RuntimeError as error:
            raise DeviceError(
                f"the array's memory cannot be shared with other processes ({error}): send a copy, cupy.asnumpy(array)"
            ) from error


_exported: WeakTable[_Exported] = WeakTable()


def _exportable(array: Any) -> Any:
    """Return the array over a copy of its memory, from its first byte to its last, of which a handle can be had."""
    low, high = extent(array.shape, array.strides, array.itemsize)
    device = array.data.device_id
    memory = driver.exportable_memory(high - low, device)
    driver.copy(memory.ptr, array.data.ptr + low, high - low, device)
    _log.debug(
        "a CuPy array is sent as a copy (%s on the GPU): its memory, %s, cannot be shared with other processes",
        human(high - low),
        type(array.data.mem).__name__,
    )
    return cupy.ndarray(array.shape, array.dtype, memory - low, array.strides)


def extent(shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int) -> tuple[int, int]:
    """Return from where to where the elements lie, in bytes, as seen from the first one."""
    reaches = [(length - 1) * stride for length, stride in zip(shape, strides, strict=True)]
    return sum(min(0, reach) for reach in reaches), sum(max(0, reach) for reach in reaches) + itemsize


def reduce_event(event: Any) -> Reduced:
    """Return how to pickle an event that was made for other processes."""
    luggage = current_luggage(event)
    driver.check_fork()
    received = vars(event).get(arriving.ORIGIN)
    if received is None:
        wait_at_exit()
        about, lease = loans.lend(event, lambda: _about_event(event))
    else:
        about, lease = received.about, another(received.lease)
    return arriving.event, (luggage.add(Held(lease)), *about)


def _about_event(event: Any) -> Told:
    device = driver.current_device()
    try:
        handle = driver.event_handle(event.ptr, device)
    except RuntimeError as error:
        raise DeviceError(
            f"the event cannot be shared with other processes ({error}): make it by cupy.cuda.Event("
            "disable_timing=True, interprocess=True), and send it while its device is the current one"
        ) from error
    return Told((handle, uuid_of(device), os.getpid()), is_over=lambda: _is_done(event, device))


def _is_done(event: Any, device: int) -> bool:
    with driver.beside_captures():
        return driver.is_done(event.ptr, device)


REDUCERS = {cupy.ndarray: reduce_array, cupy.cuda.Event: reduce_event}
