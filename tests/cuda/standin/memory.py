"""Device memory of the stand-in: a file that each process maps, so that two processes see each other's writes."""

from __future__ import annotations

import ctypes
import mmap
import os
import time
import uuid
from pathlib import Path
from typing import Any, NamedTuple

import cupy
import numpy as np

from tests.cuda.standin.events import HANDLE, INVALID, Events
from tests.cuda.standin.folder import DriverError, is_running

PAGE = mmap.PAGESIZE
_MAP_FIXED = 0x10
FREED = 0xDD
"""What is written over memory that is freed."""

_libc = ctypes.CDLL(None)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long)
_libc.mprotect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)


class Allocation(NamedTuple):
    """Memory of this process."""

    name: str
    size: int
    device: int
    kind: str


class Opened(NamedTuple):
    """Memory of another process, open in this one."""

    name: str
    size: int
    device: int


class Memory(Events):
    """The memory that this process has, by address."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._allocations: dict[int, Allocation] = {}
        self._opened: dict[int, Opened] = {}
        self._left: dict[int, list[int]] = {}

    # --- the driver module's functions ---

    def address_range(self, pointer: int, device: int) -> tuple[int, int]:
        base, found = self._around(pointer, device)
        return base, found.size

    def can_be_exported(self, pointer: int, device: int) -> bool:
        return self._around(pointer, device)[1].kind == "plain"

    def memory_handle(self, base: int, device: int) -> bytes:
        found = self._allocations.get(base)
        if found is None:
            raise self.refuse("a handle of an address that is not the beginning of an allocation", _VALUE)
        if found.kind != "plain":
            raise self.refuse(f"a handle of {found.kind} memory", _VALUE)
        if found.device != device:
            raise self.refuse("a handle of memory of another device", _VALUE)
        known = HANDLE.pack(found.name.encode(), self.gpus[found.device], os.getpid())
        return known + os.urandom(64 - len(known))

    def open_memory(self, handle: bytes, device: int) -> int:
        self.spoil_capture()
        raw, gpu, maker = HANDLE.unpack_from(handle)
        name = raw.decode()
        if self.is_denied(gpu):
            raise DriverError("cudaErrorPeerAccessUnsupported: peer access is not supported between these two devices")
        if maker == os.getpid():
            raise self.refuse("a handle opened in its own process", _CONTEXT)
        if self.gpus[device] != gpu:
            raise self.refuse("a handle opened on another device", "cudaErrorInvalidDevice: invalid device ordinal")
        if not is_running(maker):
            raise self.refuse("a handle opened whose process has ended", INVALID)
        if not (self.folder / name).exists():
            raise self.refuse("a handle of memory that was freed", INVALID)
        with self._lock:
            if name in [opened.name for opened in self._opened.values()]:
                raise self.refuse("a handle opened twice", "cudaErrorAlreadyMapped: resource already mapped")
            self._mark(name).parent.mkdir(exist_ok=True)
            self._mark(name).touch()
            size = (self.folder / name).stat().st_size
            base = _map(self.folder / name, size)
            self._opened[base] = Opened(name, size, device)
            self.note("opens")
        return base

    def close_memory(self, base: int, device: int) -> None:
        self.spoil_capture()
        with self._lock:
            if base not in self._opened:
                raise self.refuse("memory closed that is not open", _VALUE)
            opened = self._opened.pop(base)
            if not self.all_idle():
                self.violation("memory closed while work runs")
            if opened.device != device:
                self.violation("memory closed on another device")
            _libc.mprotect(base, opened.size, 0)  # not unmapped: another mapping at its place would hide its use
            self._mark(opened.name).unlink()

    def exportable_memory(self, size: int, device: int) -> Any:
        return self.allocate(size, device)

    def usual_memory(self, size: int, device: int) -> Any:
        return self.allocate(size, device)

    def copy(self, target: int, source: int, size: int, device: int) -> None:
        def work() -> None:
            time.sleep(0.05)
            ctypes.memmove(target, source, size)

        self.note("copies")
        self.stream(self.current_stream(device)).put(work)

    def to_host(self, array: Any) -> Any:
        self.synchronize(self.current_stream(array.data.device_id), array.data.device_id)
        return seen(array).copy(order="A")

    def from_host(self, array: Any, device: int) -> Any:
        made = cupy.ndarray(array.shape, array.dtype, self.allocate(array.nbytes, device), array.strides)
        seen(made)[...] = array
        return made

    # --- for the tests ---

    def allocate(self, size: int, device: int = 0, kind: str = "plain") -> Any:
        """Return a `MemoryPointer` to an allocation of the driver's of its own; freed with its last reference.

        It lies where one of the same size has lain that was freed, as a driver has it.
        """
        name = f"m{uuid.uuid4().hex[:15]}"
        whole = -(-max(1, size) // PAGE) * PAGE
        with (self.folder / name).open("wb") as file:
            file.truncate(whole)
        with self._lock:
            left = self._left.get(whole)
            base = _map(self.folder / name, whole, left.pop() if left else None)
        self._allocations[base] = Allocation(name, whole, device, kind)
        owner = Owner(self, base)
        return cupy.cuda.MemoryPointer(cupy.cuda.UnownedMemory(base, whole, owner, device), 0)

    def free(self, base: int) -> None:
        found = self._allocations.pop(base)
        for opened in self._mark(found.name).parent.glob("*"):
            if is_running(int(opened.name)):
                self.violation(f"memory freed that process {opened.name} has open")
        ctypes.memset(base, FREED, found.size)
        (self.folder / found.name).unlink(missing_ok=True)
        with self._lock:
            self._left.setdefault(found.size, []).append(base)

    # --- inner ---

    def _mark(self, name: str) -> Path:
        return self.folder / f"open-{name}" / str(os.getpid())

    def _around(self, pointer: int, device: int) -> tuple[int, Allocation]:
        for base, found in self._allocations.items():
            if base <= pointer < base + found.size:
                if found.device != device:
                    self.violation("asked about memory of another device")
                return base, found
        raise self.refuse("asked about an address that is in no allocation of this process", "CUDA_ERROR_INVALID_VALUE")


_VALUE = "cudaErrorInvalidValue: invalid argument"
_CONTEXT = "cudaErrorDeviceUninitialized: invalid device context"


class Owner:
    """Frees an allocation with its last reference."""

    def __init__(self, memory: Memory, base: int) -> None:
        self._memory, self._base = memory, base

    def __del__(self) -> None:
        self._memory.free(self._base)


def _map(path: Path, size: int, place: int | None = None) -> int:
    """Return where the file is mapped. No mmap object: that would keep a descriptor."""
    how = mmap.MAP_SHARED | (0 if place is None else _MAP_FIXED)
    with path.open("r+b") as file:
        address = _libc.mmap(place, size, mmap.PROT_READ | mmap.PROT_WRITE, how, file.fileno(), 0)
    assert address not in (None, ctypes.c_void_p(-1).value)
    return int(address)


def seen(array: Any) -> np.ndarray[Any, Any]:
    """Return the elements of a CuPy array of the stand-in, as this process sees them now."""
    if not array.size:
        return np.empty(array.shape, array.dtype)
    low = sum(min(0, (n - 1) * s) for n, s in zip(array.shape, array.strides, strict=True))
    high = sum(max(0, (n - 1) * s) for n, s in zip(array.shape, array.strides, strict=True)) + array.itemsize
    raw = (ctypes.c_char * (high - low)).from_address(array.data.ptr + low)
    return np.ndarray(array.shape, array.dtype, raw, -low, array.strides)
