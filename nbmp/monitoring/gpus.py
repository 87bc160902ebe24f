"""Memory of GPUs by process, asked of NVIDIA's driver if its Python package (`nvidia-ml-py`) happens to be installed.

The package only reads; nothing of CUDA is started in this process. In a container that has process numbers of its own
the driver speaks of others, and nothing is found.
"""

import os
from functools import cache
from importlib import import_module
from typing import Any

DEVICE = "/dev/nvidiactl"


def memory_by_process() -> dict[int, int]:
    """Return the bytes of GPU memory that processes use, by process id; empty where that cannot be had."""
    library = _library()
    found: dict[int, int] = {}
    if library is None:
        return found
    try:
        for number in range(library.nvmlDeviceGetCount()):
            device = library.nvmlDeviceGetHandleByIndex(number)
            for process in library.nvmlDeviceGetComputeRunningProcesses(device):
                found[process.pid] = found.get(process.pid, 0) + (process.usedGpuMemory or 0)
    except library.NVMLError:
        pass
    return found


@cache
def _library() -> Any:
    if not os.path.exists(DEVICE):
        return None
    try:
        pynvml: Any = import_module("pynvml")
        pynvml.nvmlInit()
    except Exception:  # whatever is wrong with it, there is no such column then
        return None
    return pynvml
