"""Shared arrays: plain `numpy.ndarray`s whose memory lies in a segment.

    array or view ── base ──> _Root ── base ──> mapping of the segment
                                ├── segment    of a shared array: its descriptor or name, to send it on
                                └── lease      of the arrays in a message: the segment is used again when it ends

The root sits directly on the mapping: NumPy shortens a base chain by skipping plain arrays, and would otherwise drop
the root, and with it what it holds, under a living view. A view keeps its root by its base chain, so a segment lives
exactly as long as something refers to its memory, and what a user does with views needs no bookkeeping.

Small arrays share a segment, so that many of them cost few descriptors. Places in it are given out once and in order;
the segment ends with the last array in it.
"""

import math
import mmap
import os
import sys
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from weakref import ref

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from nbmp.errors import OpenFilesError, SharedMemoryError
from nbmp.memory.descriptors import Owned, made
from nbmp.memory.janitor import look_after
from nbmp.memory.mappings import kept_mapping
from nbmp.memory.room import is_scarce
from nbmp.memory.segment import Segment
from nbmp.memory.strategy import new_segment, when_changed
from nbmp.memory.subclasses import is_masked_array
from nbmp.memory.weakly import WeakTable

if TYPE_CHECKING:
    from nbmp.memory.named import NamedSegment
    from nbmp.memory.strategy import AnySegment

SMALL_BYTES = 64 * 1024
"""Arrays up to this size share a segment."""
ARENA_BYTES = 1 << 20
KEPT_BYTES = 256 << 20
"""Up to this size the segment of a shared array that came stays mapped a while: what is mapped keeps its memory."""
_ALIGNMENT = 64


class _Root(np.ndarray):
    """All bytes of a segment: the bottom of the base chain of every array in it."""

    segment: "AnySegment | None"
    lease: Owned | None
    address: int

    def __reduce_ex__(self, protocol: object) -> tuple[Any, ...]:
        """Somebody sends the `base` of an array: a plain array of all the bytes arrives."""
        return np.asarray, (np.ndarray.view(self, np.ndarray),)


_roots: WeakTable[_Root] = WeakTable()
"""The roots of shared arrays in this process: a segment that arrives a second time is the same memory."""


Shape = int | tuple[int, ...]


def empty(shape: Shape, dtype: DTypeLike = float, order: str = "C") -> NDArray[Any]:
    """Return a new shared array with zeros in it (fresh memory always is).

    Parameters
    ----------
    shape : int or tuple of int
    dtype : data type, default float64
        Not `object` nor a type with Python objects in it.
    order : {"C", "F"}
        Layout: rows or columns first.

    Raises
    ------
    TypeError
        For a dtype that holds Python objects.
    SharedMemoryError
        When it is larger than the memory left.
    """
    kind = np.dtype(dtype)
    if kind.hasobject:
        raise TypeError(
            f"dtype {kind} holds Python objects, which live in one process only and cannot be shared: "
            "use a fixed-size dtype, such as a number or 'U20' for text"
        )
    extents = (shape,) if isinstance(shape, int | np.integer) else tuple(int(extent) for extent in shape)
    if any(extent < 0 for extent in extents):
        raise ValueError(f"negative dimensions are not allowed: shape {extents}")
    root, offset = _room(math.prod(extents) * kind.itemsize)
    return np.ndarray(extents, kind, root, offset, order="F" if order == "F" else "C")


def zeros(shape: Shape, dtype: DTypeLike = float, order: str = "C") -> NDArray[Any]:
    """Return a new shared array of zeros; parameters and errors as for `empty`."""
    return empty(shape, dtype, order)


def ones(shape: Shape, dtype: DTypeLike = float, order: str = "C") -> NDArray[Any]:
    """Return a new shared array of ones; parameters and errors as for `empty`."""
    return full(shape, 1, dtype, order)


def full(shape: Shape, fill_value: ArrayLike, dtype: DTypeLike | None = None, order: str = "C") -> NDArray[Any]:
    """Return a new shared array filled with `fill_value`, whose dtype it has unless given; otherwise as for `empty`."""
    array = empty(shape, np.asarray(fill_value).dtype if dtype is None else dtype, order)
    array[...] = fill_value
    return array


def is_shared(array: object) -> bool:
    """Return whether this array, or the array it is a view of, lies in shared memory; a masked array with its mask.

    A private array that came through a queue does not, although the message it came in did: it is the receiver's alone.
    A CuPy array always does.
    """
    if is_on_gpu(array):
        return True
    if not isinstance(array, np.ndarray) or _root_of(array) is None:
        return False
    return not is_masked_array(array) or _has_shared_mask(array)


def is_on_gpu(array: object) -> bool:
    """Return whether it is a CuPy array; CuPy is not loaded for that."""
    cupy: Any = sys.modules.get("cupy")
    return cupy is not None and isinstance(array, getattr(cupy, "ndarray", ()))


def _has_shared_mask(array: Any) -> bool:
    return array.mask is np.ma.nomask or is_shared(array.mask)


def place_of(array: NDArray[Any]) -> "tuple[AnySegment, int] | None":
    """Return the segment of a shared array and the offset in bytes of its first element; None for a private one."""
    if array.base is None:
        return None
    root = _root_of(array)
    if root is None or root.segment is None:
        return None
    return root.segment, array.ctypes.data - root.address


def array_at(
    arrived: "Owned | AnySegment",
    offset: int,
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    kind: DTypeLike,
    writeable: bool,
) -> NDArray[Any]:
    """Return the array at this place of the segment that arrived, over the mapping that this process has of it.

    The mapping is kept a while: what is sent again and again is mapped once, although each array is dropped.
    """
    if isinstance(arrived, Owned):
        status = os.fstat(arrived.fileno())
        root = _roots.get((status.st_dev, status.st_ino))
        if root is None:
            segment = Segment(arrived)
            root = _root(segment, _kept(segment) if segment.size <= KEPT_BYTES else segment.map)
    else:
        root = _roots.get(arrived.key)
        if root is None:
            root = _root(arrived, arrived.map)
    array: NDArray[Any] = np.ndarray(shape, kind, root, offset, strides)
    if not writeable:
        array.flags.writeable = False
    return array


def _kept(segment: Segment) -> mmap.mmap:
    map_ = kept_mapping(segment.key, segment.size, segment.fd)
    look_after()
    return map_


def leased_bytes(lease: Owned) -> memoryview:
    """Return the bytes of a message's segment; what is made of them keeps the lease.

    When descriptors or mappings are scarce they are copied into ordinary memory instead, and the lease ends: so any
    number of arrays can be received and kept.
    """
    if is_scarce(lease.fileno()):
        return _copied(lease)
    try:
        return _mapped(lease)
    except (OpenFilesError, SharedMemoryError):
        return _copied(lease)


def named_bytes(segment: "NamedSegment") -> memoryview:
    """The same for a segment that came by name: it is this process' alone, and has no name any more."""
    try:
        mapped = memoryview(segment.map_alone())
        next_one = made(os.dup, segment.fileno())  # only now: a low number that is free for a moment is the mapping's
        return _copied(segment) if is_scarce(next_one.fileno()) else mapped
    except (OpenFilesError, SharedMemoryError):
        return _copied(segment)
    finally:
        segment.unlink()


def _copied(lease: "Owned | NamedSegment") -> memoryview:
    length = os.fstat(lease.fileno()).st_size
    try:
        target = memoryview(np.empty(length, np.uint8))  # type: ignore[arg-type]  # an array is a buffer
    except MemoryError:
        raise SharedMemoryError(f"{length} bytes for an object that has arrived cannot be had: drop arrays") from None
    done = 0
    while done < length:  # one call moves 2 GiB at most
        read = os.preadv(lease.fileno(), [target[done:]], done)
        if not read:
            raise ValueError(f"its segment has become shorter: {done} of {length} bytes are there")
        done += read
    return target


def _mapped(lease: Owned) -> memoryview:
    status = os.fstat(lease.fileno())
    map_ = kept_mapping((status.st_dev, status.st_ino), status.st_size, lease.fileno())
    look_after()
    root = np.ndarray.__new__(_Root, (status.st_size,), np.uint8, map_)
    root.segment, root.lease = None, lease
    return memoryview(root)  # type: ignore[arg-type]  # an array is a buffer


def _nothing() -> None:
    return None


class _Arena:
    """The segment that small arrays are put into at present."""

    def __init__(self) -> None:
        self._current: Callable[[], _Root | None] = _nothing  # weakly: it ends with the last array in it
        self._used = 0
        self._lock = threading.Lock()

    def room(self, size: int) -> tuple[_Root, int]:
        """Return a root and an offset with room for `size` bytes, all zero."""
        with self._lock:
            root = self._current()
            if root is None or self._used + size > ARENA_BYTES:
                root, self._used = _new_root(ARENA_BYTES, "arrays"), 0
                self._current = ref(root)
            offset = self._used
            self._used += -(-size // _ALIGNMENT) * _ALIGNMENT
            return root, offset

    def leave(self) -> None:
        """Put no more arrays into the present segment."""
        with self._lock:
            self._current = _nothing

    def forget(self) -> None:
        """In a forked child: the rest of the segment is the parent's to give out."""
        self._current, self._lock = _nothing, threading.Lock()


_arena = _Arena()
os.register_at_fork(after_in_child=_arena.forget)
when_changed.append(_arena.leave)


def _room(size: int) -> tuple[_Root, int]:
    return _arena.room(size) if size <= SMALL_BYTES else (_new_root(size, "array"), 0)


def _new_root(size: int, purpose: str) -> _Root:
    segment = new_segment(size, purpose)
    return _root(segment, segment.map)


def _root(segment: "AnySegment", mapped: mmap.mmap) -> _Root:
    root = np.ndarray.__new__(_Root, (segment.size,), np.uint8, mapped)
    root.segment, root.lease = segment, None
    root.address = root.ctypes.data
    return _roots.put(segment.key, root)


def _root_of(array: object) -> _Root | None:
    base = array
    while base is not None:
        if type(base) is _Root:
            return base if base.segment is not None else None
        if type(base).__name__ == "PyCapsule":  # of `from_dlpack`: it keeps the array, but does not say which
            return _root_at(array.__array_interface__["data"][0])  # type: ignore[attr-defined]  # only arrays have one
        base = base.obj if isinstance(base, memoryview) else getattr(base, "base", None)
    return None


def _root_at(address: int) -> _Root | None:
    for root in _roots.alive():
        if root.address <= address < root.address + root.nbytes:
            return root
    return None
