"""A stand-in for the CUDA calls of `nbmp.cuda.driver`, for machines without a GPU.

Device memory is a file that each process maps, so that two processes really see each other's writes. Devices, handles,
events and what was freed are files of one folder (`FOLDER` in the environment), which is the machine. Streams are
threads that do what they are told in order: work is late, as on a GPU, and events are what orders it.

It is strict where drivers are vague. What must not happen is written down (`violations`) as well as refused:
    a handle opened in its own process, opened twice, opened on another device, or after its memory was freed
    memory freed while another process has it open, closed while work runs, closed and used (that is a SIGSEGV)
    a handle of an address inside an allocation, of managed memory, of memory of a stream-ordered pool
    an event opened after it was destroyed, or destroyed before it is done
Handles of one allocation differ in bytes that mean nothing, as real ones do.
"""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import mmap
import os
import struct
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import cupy
import numpy as np

from nbmp.cuda import devices, driver

FOLDER = "NBMP_TESTS_CUDA"
"""The environment variable that names the folder of the machine: ranks find it there."""
GPUS = tuple(uuid.UUID(int=0xA0 + number).bytes for number in range(3))
PAGE = mmap.PAGESIZE
FREED = 0xDD
"""What is written over memory that is freed."""
_HANDLE = struct.Struct("<16s16sI")
_EVENT = struct.Struct("<qq")

_libc = ctypes.CDLL(None)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long)
_libc.mprotect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)


class DriverError(RuntimeError):
    """What CuPy's CUDARuntimeError is with a driver."""


def _map(path: Path, size: int) -> int:
    """Return where the file is mapped. No mmap object: that would keep a descriptor."""
    with path.open("r+b") as file:
        address = _libc.mmap(None, size, mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_SHARED, file.fileno(), 0)
    assert address not in (None, ctypes.c_void_p(-1).value)
    return int(address)


class _Allocation(NamedTuple):
    name: str
    size: int
    device: int
    kind: str


class _Stream:
    """Does what it is told in order, in a thread that ends when there is nothing to do."""

    def __init__(self) -> None:
        self._work: deque[Callable[[], object]] = deque()
        self._changed = threading.Condition()
        self._runs = False

    def put(self, work: Callable[[], object]) -> None:
        with self._changed:
            self._work.append(work)
            if not self._runs:
                self._runs = True
                threading.Thread(target=self._run, name="stand-in stream", daemon=True).start()

    def idle(self) -> bool:
        return not self._runs

    def synchronize(self) -> None:
        with self._changed:
            self._changed.wait_for(self.idle)

    def _run(self) -> None:
        while True:
            self._work[0]()
            with self._changed:
                self._work.popleft()
                if not self._work:
                    self._runs = False
                    self._changed.notify_all()
                    return


class StandIn:
    """This process' side of the machine; its public methods are the functions of the driver module."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._allocations: dict[int, _Allocation] = {}
        self._opened: dict[int, tuple[str, int]] = {}
        self._events: dict[int, tuple[str, bool]] = {}
        self._streams: dict[int, _Stream] = {}
        self._numbers = itertools.count(0x1000)
        self._current = threading.local()
        self._lock = threading.RLock()
        visible = os.environ.get("CUDA_VISIBLE_DEVICES")
        numbers = range(len(GPUS)) if visible is None else map(int, visible.split(","))
        self._gpus = [GPUS[number] for number in numbers]

    # --- the driver module's functions ---

    def check(self) -> None:
        driver.check_fork()

    def device_count(self) -> int:
        return len(self._gpus)

    def current_device(self) -> int:
        return 0

    def device_uuid(self, device: int) -> bytes:
        return self._gpus[device]

    def finish(self, device: int) -> None:
        for stream in list(self._streams.values()):
            stream.synchronize()

    def address_range(self, pointer: int, device: int) -> tuple[int, int]:
        base, found = self._around(pointer)
        assert found.device == device
        return base, found.size

    def can_be_exported(self, pointer: int, device: int) -> bool:
        return self._around(pointer)[1].kind == "plain"

    def memory_handle(self, base: int, device: int) -> bytes:
        found = self._allocations.get(base)
        if found is None:
            self.violation("a handle of an address that is not the beginning of an allocation")
            raise DriverError("cudaErrorInvalidValue: invalid argument")
        if found.kind != "plain":
            self.violation(f"a handle of {found.kind} memory")
            raise DriverError("cudaErrorInvalidValue: invalid argument")
        known = _HANDLE.pack(found.name.encode(), self._gpus[found.device], os.getpid())
        return known + os.urandom(64 - len(known))

    def open_memory(self, handle: bytes, device: int) -> int:
        raw, gpu, pid = _HANDLE.unpack_from(handle)
        name = raw.decode()
        if (self._folder / f"deny-{gpu.hex()}").exists():
            raise DriverError("cudaErrorPeerAccessUnsupported: peer access is not supported between these two devices")
        if pid == os.getpid():
            self.violation("a handle opened in its own process")
            raise DriverError("cudaErrorDeviceUninitialized: invalid device context")
        if self._gpus[device] != gpu:
            self.violation("a handle opened on another device")
            raise DriverError("cudaErrorInvalidDevice: invalid device ordinal")
        if not (self._folder / name).exists() or not is_running(pid):
            if is_running(pid):
                self.violation("a handle of memory that was freed")
            raise DriverError("cudaErrorInvalidResourceHandle: invalid resource handle")
        with self._lock:
            if name in [opened for opened, _ in self._opened.values()]:
                self.violation("a handle opened twice")
                raise DriverError("cudaErrorAlreadyMapped: resource already mapped")
            (self._folder / f"open-{name}-{os.getpid()}").touch()
            size = (self._folder / name).stat().st_size
            base = _map(self._folder / name, size)
            self._opened[base] = name, size
            self._note("opens")
        return base

    def close_memory(self, base: int, device: int) -> None:
        with self._lock:
            if base not in self._opened:
                self.violation("memory closed that is not open")
                return
            if not all(stream.idle() for stream in self._streams.values()):
                self.violation("memory closed while work runs")
            name, size = self._opened.pop(base)
            _libc.mprotect(base, size, 0)  # not unmapped: another mapping at its place would hide its use
            (self._folder / f"open-{name}-{os.getpid()}").unlink()

    def exportable_memory(self, size: int, device: int) -> Any:
        return self.allocate(size, device)

    def usual_memory(self, size: int, device: int) -> Any:
        return self.allocate(size, device)

    def copy(self, target: int, source: int, size: int, device: int) -> None:
        def work() -> None:
            time.sleep(0.05)
            ctypes.memmove(target, source, size)

        self._note("copies")
        self.stream(self.current_stream(device)).put(work)

    def to_host(self, array: Any) -> Any:
        self.synchronize(self.current_stream(array.data.device_id), array.data.device_id)
        return seen(array).copy(order="A")

    def from_host(self, array: Any, device: int) -> Any:
        made = cupy.ndarray(array.shape, array.dtype, self.allocate(array.nbytes, device), array.strides)
        seen(made)[...] = array
        return made

    def current_stream(self, device: int) -> int:
        return int(getattr(self._current, "stream", 0))

    def is_idle(self, stream: int, device: int) -> bool:
        return self.stream(stream).idle()

    def synchronize(self, stream: int, device: int) -> None:
        self.stream(stream).synchronize()

    def new_event(self, device: int) -> int:
        event, name = next(self._numbers), f"event-{uuid.uuid4().hex[:8]}"
        (self._folder / name).write_bytes(_EVENT.pack(0, 0))
        self._events[event] = name, True
        self._note("events")
        return event

    def event_handle(self, event: int, device: int) -> bytes:
        name, own = self._events[event]
        if not own:
            self.violation("a handle of an event that was opened from a handle")
        return _HANDLE.pack(name.encode(), self._gpus[device], os.getpid()).ljust(64, b"\0")

    def open_event(self, handle: bytes, device: int) -> int:
        raw, gpu, pid = _HANDLE.unpack_from(handle)
        name = raw.rstrip(b"\0").decode()
        if pid == os.getpid():
            self.violation("an event opened in its own process")
        if gpu != self._gpus[device]:
            self.violation("an event opened on another device")
        if not (self._folder / name).exists():
            self.violation("an event opened that was destroyed")
            raise DriverError("cudaErrorInvalidResourceHandle: invalid resource handle")
        event = next(self._numbers)
        self._events[event] = name, False
        return event

    def is_done(self, event: int) -> bool:
        recorded, done = self._event(self._events[event][0])
        return recorded == done

    def destroy_event(self, event: int) -> None:
        if self._events[event][1] and not self.is_done(event):
            self.violation("an event destroyed that others may be waiting for")
        name, own = self._events.pop(event)
        if own:
            (self._folder / name).unlink()

    def record(self, event: int, stream: int, device: int) -> None:
        name = self._events[event][0]
        recorded = self._event(name)[0] + 1
        self._set(name, 0, recorded)
        self.stream(stream).put(lambda: self._set(name, 1, recorded))

    def wait_for(self, event: int, stream: int, device: int) -> None:
        path = self._folder / self._events[event][0]
        recorded = _EVENT.unpack(path.read_bytes())[0]

        def wait() -> None:
            with contextlib.suppress(FileNotFoundError, struct.error):  # its process has ended
                while _EVENT.unpack(path.read_bytes())[1] < recorded:
                    time.sleep(0.001)

        self.stream(stream).put(wait)

    # --- for the tests ---

    def allocate(self, size: int, device: int = 0, kind: str = "plain") -> Any:
        """Return a `MemoryPointer` to an allocation of the driver's of its own; freed with its last reference."""
        name = f"m{uuid.uuid4().hex[:15]}"
        whole = -(-max(1, size) // PAGE) * PAGE
        with (self._folder / name).open("wb") as file:
            file.truncate(whole)
        base = _map(self._folder / name, whole)
        self._allocations[base] = _Allocation(name, whole, device, kind)
        owner = Owner(self, base)
        return cupy.cuda.MemoryPointer(cupy.cuda.UnownedMemory(base, whole, owner, device), 0)

    def free(self, base: int) -> None:
        found = self._allocations.pop(base)
        path = self._folder / found.name
        for opened in self._folder.glob(f"open-{found.name}-*"):
            if is_running(int(opened.name.rpartition("-")[2])):
                self.violation(f"memory freed that process {opened.name.rpartition('-')[2]} has open")
        ctypes.memset(base, FREED, found.size)
        path.unlink(missing_ok=True)

    def stream(self, number: int) -> _Stream:
        with self._lock:
            return self._streams.setdefault(number, _Stream())

    @contextlib.contextmanager
    def on_stream(self, number: int) -> Iterator[None]:
        """Have `number` be the current stream of this thread."""
        before = self.current_stream(0)
        self._current.stream = number
        try:
            yield
        finally:
            self._current.stream = before

    def violation(self, text: str) -> None:
        self._note("violations", f"{os.getpid()}: {text}")

    def noted(self, what: str) -> list[str]:
        """Return what was noted of this, by all processes of the machine."""
        path = self._folder / f"noted-{what}"
        return path.read_text().splitlines() if path.exists() else []

    def deny(self, gpu: bytes) -> None:
        """Have nobody open memory of this device."""
        (self._folder / f"deny-{gpu.hex()}").touch()

    def _note(self, what: str, text: str | None = None) -> None:
        with (self._folder / f"noted-{what}").open("a") as file:
            file.write(f"{text or os.getpid()}\n")

    def _around(self, pointer: int) -> tuple[int, _Allocation]:
        for base, found in self._allocations.items():
            if base <= pointer < base + found.size:
                return base, found
        self.violation("asked about an address that is in no allocation of this process")
        raise DriverError("CUDA_ERROR_INVALID_VALUE")

    def _event(self, name: str) -> tuple[int, int]:
        recorded, done = _EVENT.unpack((self._folder / name).read_bytes())
        return recorded, done

    def _set(self, name: str, which: int, value: int) -> None:
        with contextlib.suppress(FileNotFoundError), (self._folder / name).open("r+b") as file:
            os.pwrite(file.fileno(), struct.pack("<q", value), 8 * which)


class Owner:
    """Frees an allocation with its last reference."""

    def __init__(self, machine: StandIn, base: int) -> None:
        self._machine, self._base = machine, base

    def __del__(self) -> None:
        self._machine.free(self._base)


def seen(array: Any) -> np.ndarray[Any, Any]:
    """Return the elements of a CuPy array of the stand-in, as this process sees them now."""
    if not array.size:
        return np.empty(array.shape, array.dtype)
    low = sum(min(0, (n - 1) * s) for n, s in zip(array.shape, array.strides, strict=True))
    high = sum(max(0, (n - 1) * s) for n, s in zip(array.shape, array.strides, strict=True)) + array.itemsize
    raw = (ctypes.c_char * (high - low)).from_address(array.data.ptr + low)
    return np.ndarray(array.shape, array.dtype, raw, -low, array.strides)


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in ("Z", "X")
    except OSError:
        return False


REPLACED = [name for name in vars(StandIn) if not name.startswith("_") and callable(getattr(driver, name, None))]

machine: StandIn | None = None


def install(folder: Path) -> StandIn:
    """Put the stand-in in the place of the driver's functions of this process."""
    global machine
    machine = StandIn(folder)
    for name in REPLACED:
        setattr(driver, name, getattr(machine, name))
    devices.uuid_of.cache_clear()
    devices.device_of.cache_clear()
    return machine


if FOLDER in os.environ:  # in a rank: before anything is unpickled that needs it
    install(Path(os.environ[FOLDER]))
