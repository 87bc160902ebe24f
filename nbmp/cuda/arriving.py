"""The receiving side: CuPy arrays and events out of a pickle. Called by `pickle`, while a message is read."""

from typing import Any, NamedTuple

from nbmp.cuda import driver
from nbmp.cuda.devices import device_of
from nbmp.cuda.loans import key_of, loans
from nbmp.cuda.received import Allocation, opened_event, owned_by, use
from nbmp.memory.descriptors import Owned
from nbmp.memory.mappings import Key
from nbmp.memory.weakly import WeakTable
from nbmp.pickling.arriving import came_along

driver.need_cupy()
import cupy  # noqa: E402 - after the line that says what to install when it is missing

ORIGIN = "_nbmp_origin"
"""The attribute of an event that was received which says where it came from."""


def empty(device: bytes, shape: tuple[int, ...], kind: Any) -> Any:
    """Return an array without elements."""
    nothing = cupy.cuda.UnownedMemory(0, 0, None, device_of(device))
    return cupy.ndarray(shape, kind, cupy.cuda.MemoryPointer(nothing, 0))


def from_host(array: Any, device: bytes) -> Any:
    """Return an array that came through the host."""
    return driver.from_host(array, device_of(device))


def block(index: int, about: tuple[Any, ...]) -> Any:
    """Return CuPy's memory object of a block: the original one in the process that owns it, else the block opened."""
    lease: Owned = came_along(index)
    key = key_of(lease)
    own = loans.thing_of(key)
    if own is not None:
        return own
    *allocation, offset, size = about
    found = use(key, lease, about, Allocation(*allocation), offset + size)
    return cupy.cuda.UnownedMemory(found.base + offset, size, found, found.opened.device)


def array(
    memory: Any, order: None, private: bool, offset: int, shape: tuple[int, ...], strides: tuple[int, ...], kind: Any
) -> Any:
    """Return the array at this place of a block. Whatever it has to wait for, the current stream waits for already.

    With `private` a copy of it, unless the memory is this process' own: it may outlive the sender.
    """
    found = cupy.ndarray(shape, kind, cupy.cuda.MemoryPointer(memory, offset), strides)
    return _copied(found) if private and owned_by(memory) is not None else found


def _copied(found: Any) -> Any:
    """Return the array over memory of this process, complete: the thread that reads results is not the user's."""
    from nbmp.cuda.leaving import extent

    low, high = extent(found.shape, found.strides, found.itemsize)
    device = found.data.device_id
    memory = driver.usual_memory(high - low, device)
    driver.copy(memory.ptr, found.data.ptr + low, high - low, device)
    driver.synchronize(driver.current_stream(device), device)
    return cupy.ndarray(found.shape, found.dtype, memory - low, found.strides)


class _Origin(NamedTuple):
    """Where a received event came from; its lease ends with the event."""

    about: tuple[Any, ...]
    lease: Owned


_events: "WeakTable[Any]" = WeakTable()


def event(index: int, handle: bytes, device: bytes, maker: int) -> Any:
    """Return the event: the original one in the process that made it, the same one when it comes again."""
    lease: Owned = came_along(index)
    key: Key = key_of(lease)
    found = loans.thing_of(key) or _events.get(key)
    if found is None:
        found = cupy.cuda.Event.__new__(cupy.cuda.Event)
        found.ptr = 0
        found.ptr = opened_event(handle, device, maker)
        setattr(found, ORIGIN, _Origin((handle, device, maker), lease))
        _events.put(key, found)
    return found
