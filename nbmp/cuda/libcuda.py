"""NVIDIA's driver library itself, for what CuPy has no function for. Loaded at the first call."""

import ctypes
from functools import cache
from typing import Any

from nbmp import platforms
from nbmp.errors import DeviceError


@cache
def library() -> ctypes.CDLL:
    return ctypes.CDLL(platforms.CUDA_LIBRARY)


def call(name: str, *arguments: Any, allowed: int = 0) -> None:
    """Call a function of the library; DeviceError when it fails by another error than `allowed`."""
    code = getattr(library(), name)(*arguments)
    if code not in (0, allowed):
        raise DeviceError(f"{name} failed with CUDA's error {code} ({_error_name(code)})")


def _error_name(code: int) -> str:
    name = ctypes.c_char_p()
    library().cuGetErrorName(code, ctypes.byref(name))
    return (name.value or b"unknown").decode()
