"""Calls of libcuda that CuPy has no function for, on a library with their names and rules; and the stand-in's names."""

from __future__ import annotations

import contextlib
import ctypes
import inspect
import re
import subprocess
import threading
from pathlib import Path

import cupy
import pytest

import nbmp
from nbmp.cuda import driver, libcuda
from tests import fakecuda
from tests.cuda import standin

SOURCE = """
#include <stddef.h>
#include <string.h>
static _Thread_local int device = -1;            /* whose context is current in this thread */
static const char *managed = (char *)0x20000, *pool = (char *)0x30000, *host = (char *)0x40000;
void bind(int number) { device = number; }
int cuMemGetAddressRange_v2(unsigned long long *base, size_t *size, unsigned long long address) {
    if (device != address >> 32) return 201;
    *base = address & ~0xffffULL;
    *size = 0x10000;
    return 0;
}
int cuPointerGetAttribute(void *data, int attribute, unsigned long long address) {
    if (device < 0) return 201;
    const char *low = (const char *)(address & 0xffffffff);
    if (low >= host) return 1;
    switch (attribute) {
    case 8: *(unsigned char *)data = low >= managed && low < pool; return 0;
    case 10: *(unsigned *)data = low < pool; return 0;   /* so vaguely told that managed memory counts too */
    case 13: *(unsigned *)data = 1; return 0;            /* is mapped: all of it is */
    default: return 801;
    }
}
int cuDeviceGet(int *found, int ordinal) { *found = ordinal + 100; return ordinal > 1 ? 101 : 0; }
int cuDeviceGetUuid_v2(void *uuid, int found) { memset(uuid, found, 16); return 0; }
_Thread_local int mode;                   /* how this thread minds captures */
int cuThreadExchangeStreamCaptureMode(int *found) {
    int before = mode;
    if (device < 0) return 3;
    mode = *found;
    *found = before;
    return 0;
}
int cuGetErrorName(int code, const char **name) {
    *name = code == 201 ? "CUDA_ERROR_INVALID_CONTEXT" : code == 101 ? "CUDA_ERROR_INVALID_DEVICE" : "CUDA_ERROR_OTHER";
    return 0;
}
"""


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ctypes.CDLL:
    """Have a libcuda, and a CuPy whose `with Device` is as it is with a driver."""
    source, path = tmp_path / "driver.c", tmp_path / "driver.so"
    source.write_text(SOURCE)
    subprocess.run([str(fakecuda.COMPILER), "-shared", "-fPIC", "-o", str(path), str(source)], check=True)
    found = ctypes.CDLL(str(path))
    current = threading.local()

    class Device:
        def __init__(self, number: int) -> None:
            self.number = number

        def use(self) -> None:
            current.number = self.number
            found.bind(self.number)

        def __enter__(self) -> Device:
            self.before = getattr(current, "number", 0)
            if self.number != self.before:  # CuPy does nothing when it is the current one, bound or not
                self.use()
            return self

        def __exit__(self, *_: object) -> None:
            Device(self.before).use()

    monkeypatch.setattr(libcuda, "library", lambda: found)
    monkeypatch.setattr(driver, "device_count", lambda: 2)
    monkeypatch.setattr(cupy.cuda, "Device", Device)
    return found


def address(low: int, device: int) -> int:
    return (device << 32) | low


@fakecuda.NEEDS_COMPILER
@pytest.mark.parametrize("device", [0, 1])
def test_allocation_is_found_in_a_thread_that_has_called_nothing_of_cuda_yet(library: ctypes.CDLL, device: int) -> None:
    found: list[tuple[int, int]] = []
    thread = threading.Thread(target=lambda: found.append(driver.address_range(address(0x12345, device), device)))
    thread.start()
    thread.join()
    assert found == [(address(0x10000, device), 0x10000)]


@fakecuda.NEEDS_COMPILER
def test_managed_and_pool_memory_and_the_hosts_has_no_handle(library: ctypes.CDLL) -> None:
    answers = [driver.can_be_exported(address(low, 1), 1) for low in (0x10000, 0x20000, 0x30000, 0x40000)]
    assert answers == [True, False, False, False]


@fakecuda.NEEDS_COMPILER
def test_uuid_is_that_of_the_device_and_errors_have_names(library: ctypes.CDLL) -> None:
    assert driver.device_uuid(1) == bytes([101] * 16)
    with pytest.raises(
        nbmp.DeviceError, match=r"cuDeviceGet failed with CUDA's error 101 \(CUDA_ERROR_INVALID_DEVICE\)"
    ):
        driver.device_uuid(2)
    with pytest.raises(nbmp.DeviceError, match="CUDA_ERROR_INVALID_CONTEXT"):
        driver.address_range(address(0x10000, 1), 0)


@fakecuda.NEEDS_COMPILER
def test_work_beside_captures_leaves_the_threads_mode_as_it_was(library: ctypes.CDLL) -> None:
    def mode() -> int:
        return ctypes.c_int.in_dll(library, "mode").value

    with driver.beside_captures():  # CUDA is not initialised yet
        assert mode() == 0
    library.bind(0)
    with driver.beside_captures(), driver.beside_captures():
        assert mode() == 2
    assert mode() == 0


def runtime_error(status: int) -> Exception:
    return cupy.cuda.runtime.CUDARuntimeError(status)  # type: ignore[no-any-return]


def test_captured_stream_is_refused_and_a_device_that_failed_is_not_taken_for_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cupy.cuda, "Device", lambda _: contextlib.nullcontext())

    def answer(found: object) -> None:
        def ask(_: int) -> object:
            if isinstance(found, Exception):
                raise found
            return found

        monkeypatch.setattr(cupy.cuda.runtime, "streamIsCapturing", ask)

    answer(False)
    driver.refuse_capture(1, 0)
    for found in (True, runtime_error(906), RuntimeError("the stream was capturing")):
        answer(found)
        with pytest.raises(nbmp.DeviceError, match="captured into a CUDA graph"):
            driver.refuse_capture(1, 0)
    for code, name in ((700, "cudaErrorIllegalAddress"), (909, "cudaErrorTimeout")):
        answer(runtime_error(code))
        with pytest.raises(cupy.cuda.runtime.CUDARuntimeError, match=name):
            driver.refuse_capture(1, 0)


def test_device_is_not_done_before_captures_are(monkeypatch: pytest.MonkeyPatch) -> None:
    errors = [runtime_error(900), runtime_error(901)]

    def synchronize() -> None:
        if errors:
            raise errors.pop()

    monkeypatch.setattr(cupy.cuda, "Device", lambda _: contextlib.nullcontext())
    monkeypatch.setattr(cupy.cuda.runtime, "deviceSynchronize", synchronize)
    driver.finish(0)
    assert not errors
    errors.append(runtime_error(700))
    with pytest.raises(cupy.cuda.runtime.CUDARuntimeError):
        driver.finish(0)


def test_event_of_a_device_that_failed_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cupy.cuda, "Device", lambda _: contextlib.nullcontext())
    for code, over in ((0, True), (600, False), (700, True), (719, True)):
        monkeypatch.setattr(cupy.cuda.runtime, "eventQuery", lambda _, code=code: code)
        assert driver.is_done(1, 0) is over


def test_stand_in_has_every_call_into_cuda_with_the_same_parameters() -> None:
    without = {"need_cupy", "check_fork"}  # these call nothing of CUDA
    functions = inspect.getmembers(driver, inspect.isfunction)
    named = {name for name, one in functions if one.__module__ == driver.__name__ and not name.startswith("_")}
    assert named - without == set(standin.REPLACED)
    for name in standin.REPLACED:
        ours = list(inspect.signature(getattr(standin.StandIn, name)).parameters)[1:]
        assert ours == list(inspect.signature(getattr(driver, name)).parameters), name


CALLS = {
    "deviceSynchronize": "deviceSynchronize()",
    "eventCreateWithFlags": "eventCreateWithFlags(unsigned int flags)",
    "eventDestroy": "eventDestroy(intptr_t event)",
    "eventQuery": "eventQuery(intptr_t event)",
    "eventRecord": "eventRecord(intptr_t event, intptr_t stream)",
    "getDevice": "getDevice()",
    "getDeviceCount": "getDeviceCount()",
    "ipcCloseMemHandle": "ipcCloseMemHandle(intptr_t devPtr)",
    "ipcGetEventHandle": "ipcGetEventHandle(intptr_t event)",
    "ipcGetMemHandle": "ipcGetMemHandle(intptr_t devPtr)",
    "ipcOpenEventHandle": "ipcOpenEventHandle(bytes handle)",
    "ipcOpenMemHandle": "ipcOpenMemHandle(bytes handle, unsigned int flags=",
    "memcpyAsync": "memcpyAsync(intptr_t dst, intptr_t src, size_t size, int kind, intptr_t stream)",
    "streamIsCapturing": "streamIsCapturing(intptr_t stream)",
    "streamQuery": "streamQuery(intptr_t stream)",
    "streamSynchronize": "streamSynchronize(intptr_t stream)",
    "streamWaitEvent": "streamWaitEvent(intptr_t stream, intptr_t event, unsigned int flags=0)",
}


def test_cupy_has_each_call_as_it_is_called() -> None:
    used = set(re.findall(r"runtime\.([a-z]\w*)\(", inspect.getsource(driver)))
    assert used == set(CALLS)
    for name, call in CALLS.items():
        assert getattr(cupy.cuda.runtime, name).__doc__.startswith(call)
