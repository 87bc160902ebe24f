"""Every call of nbmp's into CUDA, and nothing else: by CuPy's bindings, and by `libcuda` where those lack something.

Nobody else calls CUDA, so that the tests can put a stand-in in place of these functions, whose memory is ordinary
shared memory. Devices are CuPy's numbers of this process; streams and events are pointers.
"""

import ctypes
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from nbmp import platforms
from nbmp.cuda import libcuda
from nbmp.errors import CudaForkError, DeviceError

_missing: ImportError | None = None
try:
    import cupy
except ImportError as error:
    cupy, _missing = None, error

_IS_LEGACY_CUDA_IPC_CAPABLE = 10
"""CU_POINTER_ATTRIBUTE of memory that cuIpcGetMemHandle takes: not of a stream-ordered pool, not of cuMemMap."""
_IS_MANAGED = 8
"""CU_POINTER_ATTRIBUTE of memory that moves between host and GPU, of which there is no handle either."""

_INVALID_VALUE = 1
"""CUDA_ERROR_INVALID_VALUE."""
_CAPTURED = range(900, 909)
"""cudaErrorStreamCapture...: what was asked for cannot be had while a stream is captured into a graph."""
_STRICT, _RELAXED = 0, 2
"""CU_STREAM_CAPTURE_MODE_GLOBAL, which threads begin with, and CU_STREAM_CAPTURE_MODE_RELAXED."""
_NOT_READY = 600
"""cudaErrorNotReady. Any other error is that of earlier work, and does not pass."""

_LOOK_SECONDS = 0.05
"""How often a captured stream is looked at."""

Memory = Any
"""CuPy's `BaseMemory`, which is freed with its last reference."""


def need_cupy() -> None:
    """Raise ModuleNotFoundError, which says what to install, without CuPy."""
    if _missing is not None:
        raise ModuleNotFoundError(
            "CuPy, without which no array on a GPU can be sent, received or asked about, cannot be imported here "
            f"({_missing}): install it by  pip install cupy-cuda12x  or, for CUDA 13,  pip install cupy-cuda13x",
            name="cupy",
        ) from _missing


def check() -> None:
    """Raise DeviceError when there is no driver or no GPU, and as `need_cupy`. Initialises CUDA."""
    need_cupy()
    check_fork()
    try:
        count = cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        raise DeviceError(
            f"no CUDA here ({error}): install NVIDIA's driver, which brings {platforms.CUDA_LIBRARY}; in a container "
            "start it with GPUs (docker run --gpus all)"
        ) from error
    if not count:
        raise DeviceError("there is no GPU that this process may use: see CUDA_VISIBLE_DEVICES")


def check_fork() -> None:
    """Raise CudaForkError in a process that was forked when CUDA was initialised."""
    by = platforms.lost_to_fork()
    if by is not None:
        raise CudaForkError(
            f"CUDA was initialised (by {by}) before this process was forked, and cannot be used in a forked process: "
            "start processes that use the GPU by start_method='spawn' or 'forkserver'"
        )


# --- devices ------------------------------------------------------------------------------------------


def device_count() -> int:
    return int(cupy.cuda.runtime.getDeviceCount())


def current_device() -> int:
    return int(cupy.cuda.runtime.getDevice())


def device_uuid(device: int) -> bytes:
    """Return the 16 bytes that name this device, or this slice of one, in every process of this machine.

    Needs no context, and so makes none: they take memory on each device.
    """
    device_count()  # initialises the driver
    number, uuid = ctypes.c_int(), (ctypes.c_ubyte * 16)()
    libcuda.call("cuDeviceGet", ctypes.byref(number), device)
    libcuda.call("cuDeviceGetUuid_v2", ctypes.byref(uuid), number)
    return bytes(uuid)


def finish(device: int) -> None:
    """Wait until all that was asked of this device by this process is done, and no stream of it is captured."""
    with cupy.cuda.Device(device):
        while not _is_finished():
            time.sleep(_LOOK_SECONDS)


def _is_finished() -> bool:
    """Wait for the current device; return False when one of its streams is captured into a graph."""
    try:
        cupy.cuda.runtime.deviceSynchronize()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        if error.status not in _CAPTURED:
            raise
        return False
    return True


# --- memory -------------------------------------------------------------------------------------------


def address_range(pointer: int, device: int) -> tuple[int, int]:
    """Return address and size of the driver's allocation that this address lies in."""
    base, size = ctypes.c_uint64(), ctypes.c_size_t()
    with _context(device):
        libcuda.call("cuMemGetAddressRange_v2", ctypes.byref(base), ctypes.byref(size), ctypes.c_uint64(pointer))
    return base.value, size.value


def can_be_exported(pointer: int, device: int) -> bool:
    """Return whether a handle of the memory there can be had."""
    with _context(device):
        return _attribute(_IS_LEGACY_CUDA_IPC_CAPABLE, pointer) != 0 and _attribute(_IS_MANAGED, pointer) == 0


def _attribute(number: int, pointer: int) -> int:
    """Return an attribute of the memory there, 0 for memory that is none of CUDA's (CuPy's `malloc_system`)."""
    answer = ctypes.c_uint64()  # one byte or more is written: the rest stays 0
    arguments = ctypes.byref(answer), ctypes.c_int(number), ctypes.c_uint64(pointer)
    libcuda.call("cuPointerGetAttribute", *arguments, allowed=_INVALID_VALUE)
    return answer.value


@contextmanager
def _context(device: int) -> Iterator[None]:
    """Have the device's context be the current one of this thread.

    For calls of libcuda: other than CuPy's, they fail in a thread that has called nothing of CUDA yet. CuPy's `with`
    alone leaves such a thread as it is when the device is number 0.
    """
    with cupy.cuda.Device(device) as current:
        current.use()
        yield


def memory_handle(base: int, device: int) -> bytes:
    """Return the handle of an allocation; give it the allocation's own address."""
    with cupy.cuda.Device(device):
        return bytes(cupy.cuda.runtime.ipcGetMemHandle(base))


def open_memory(handle: bytes, device: int) -> int:
    """Return the address at which the allocation of another process appears here."""
    with cupy.cuda.Device(device):
        return int(cupy.cuda.runtime.ipcOpenMemHandle(handle, cupy.cuda.runtime.cudaIpcMemLazyEnablePeerAccess))


def close_memory(base: int, device: int) -> None:
    with cupy.cuda.Device(device):
        cupy.cuda.runtime.ipcCloseMemHandle(base)


def exportable_memory(size: int, device: int) -> Any:
    """Return a `MemoryPointer` to new memory of which a handle can be had, whatever allocator the user has chosen."""
    with cupy.cuda.Device(device):
        return _exportable_pool().malloc(size)


@cache
def _exportable_pool() -> Any:
    return cupy.cuda.MemoryPool()  # on top of plain cudaMalloc


def usual_memory(size: int, device: int) -> Any:
    """Return a `MemoryPointer` to new memory, from the allocator that the user has chosen."""
    with cupy.cuda.Device(device):
        return cupy.cuda.alloc(size)


def copy(target: int, source: int, size: int, device: int) -> None:
    """Copy, on the current stream."""
    with cupy.cuda.Device(device):
        cupy.cuda.runtime.memcpyAsync(target, source, size, cupy.cuda.runtime.memcpyDefault, current_stream(device))


def to_host(array: Any) -> Any:
    """Return a copy as a NumPy array, its axes in the same order in memory; waits for the current stream."""
    with cupy.cuda.Device(array.data.device_id):
        return array.get(order="A")


def from_host(array: Any, device: int) -> Any:
    """Return a copy of a NumPy array as a CuPy array."""
    with cupy.cuda.Device(device):
        return cupy.array(array, order="K")


# --- streams and events -------------------------------------------------------------------------------


def current_stream(device: int) -> int:
    """Return the current stream of this thread on that device."""
    return int(cupy.cuda.get_current_stream(device).ptr)


def is_idle(stream: int, device: int) -> bool:
    """Return whether all that was put on this stream is done."""
    with cupy.cuda.Device(device):
        return bool(cupy.cuda.runtime.streamQuery(stream) == 0)


def synchronize(stream: int, device: int) -> None:
    """Wait in Python until all that was put on this stream is done."""
    with cupy.cuda.Device(device):
        cupy.cuda.runtime.streamSynchronize(stream)


def new_event(device: int) -> int:
    """Return an event of which a handle can be had."""
    runtime = cupy.cuda.runtime
    with cupy.cuda.Device(device):
        return int(runtime.eventCreateWithFlags(runtime.eventDisableTiming | runtime.eventInterprocess))


def event_handle(event: int, device: int) -> bytes:
    with cupy.cuda.Device(device):
        return bytes(cupy.cuda.runtime.ipcGetEventHandle(event))


def open_event(handle: bytes, device: int) -> int:
    with cupy.cuda.Device(device):
        return int(cupy.cuda.runtime.ipcOpenEventHandle(handle))


def destroy_event(event: int, device: int) -> None:
    """Let go of an event: what waits for it still does."""
    with cupy.cuda.Device(device):
        cupy.cuda.runtime.eventDestroy(event)


def record(event: int, stream: int, device: int) -> None:
    with cupy.cuda.Device(device):
        cupy.cuda.runtime.eventRecord(event, stream)


def is_done(event: int, device: int) -> bool:
    """Return whether what it was recorded after is done, or never will be; also for one that was never recorded.

    Raises nothing when the device has failed: whoever asks from time to time would be ended by that.
    """
    try:
        with cupy.cuda.Device(device):
            return bool(cupy.cuda.runtime.eventQuery(event) != _NOT_READY)
    except cupy.cuda.runtime.CUDARuntimeError:
        return True


def wait_for(event: int, stream: int, device: int) -> None:
    """Have the stream wait for the event; returns at once."""
    with cupy.cuda.Device(device):
        cupy.cuda.runtime.streamWaitEvent(stream, event)


# --- graphs -------------------------------------------------------------------------------------------


def refuse_capture(stream: int, device: int) -> None:
    """Raise DeviceError when this stream is captured into a graph: to ask it anything would end that with an error."""
    with cupy.cuda.Device(device):
        if _is_captured(stream):
            raise DeviceError(
                "the current stream is being captured into a CUDA graph: send and receive arrays before or after that, "
                "or while another stream is the current one"
            )


def _is_captured(stream: int) -> bool:
    try:
        return bool(cupy.cuda.runtime.streamIsCapturing(stream))
    except cupy.cuda.runtime.CUDARuntimeError as error:
        if error.status not in _CAPTURED:
            raise
        return True  # the default stream, while one is captured that it waits for
    except RuntimeError:  # it is, but an error has ended that
        return True


@contextmanager
def beside_captures() -> Iterator[None]:
    """Have what this thread asks for be no part of what other threads capture into graphs.

    A mere look at an event would end that with an error, as CUDA has it when nothing else is said.
    """
    before = _exchanged_mode(_RELAXED)
    try:
        yield
    finally:
        _exchanged_mode(before)


def _exchanged_mode(mode: int) -> int:
    """Set how this thread minds captures; return how it did."""
    found = ctypes.c_int(mode)
    code = libcuda.library().cuThreadExchangeStreamCaptureMode(ctypes.byref(found))
    return found.value if code == 0 else _STRICT  # CUDA is not initialised, or the process ends
