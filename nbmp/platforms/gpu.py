"""Whether CUDA is initialised in this process, and by whom. Asking loads nothing and initialises nothing.

CUDA is initialised as soon as anybody has called `cuInit`, also by a mere "how many GPUs are there?". From then on a
forked child cannot use it: every call fails there, and no call can repair it. What is asked:

    libcuda is not loaded         not initialised: whoever initialises CUDA loads its driver's library
    cuCtxGetCurrent says 0        initialised (with or without a context of this thread)
    it says anything else         not initialised; a forked child of a process that was, is told so too

A device file that is open proves nothing: NVML (`nvidia-smi`, monitors) opens it as well, and survives a fork.
"""

import os
import sys

CUDA_LIBRARY = "libcuda.so.1"
_UNKNOWN = "a library that uses the CUDA driver"

_lost: str | None = None
"""Who had initialised CUDA in the process that this one was forked from."""


def cuda_user() -> str | None:
    """Return the name of the library that initialised CUDA in this process; None when nobody did."""
    return _library() if _is_initialised() else None


def lost_to_fork() -> str | None:
    """Return who had initialised CUDA before this process was forked, so that it is of no use here; None usually."""
    return _lost


def visible_gpus() -> list[str]:
    """Return the GPUs that this process may use, as they are named in CUDA_VISIBLE_DEVICES: numbers or UUIDs.

    Of the variable if it is set, else of what the driver shows in /proc or /dev; CUDA is not asked.
    """
    chosen = os.environ.get("CUDA_VISIBLE_DEVICES")
    if chosen is not None:
        names = [name.strip() for name in chosen.split(",")]
        ends = next((number for number, name in enumerate(names) if name in ("", "-1", "NoDevFiles")), len(names))
        return names[:ends]  # CUDA stops reading there as well
    try:
        count = len(os.listdir("/proc/driver/nvidia/gpus"))
    except OSError:
        count = sum(name.startswith("nvidia") and name[6:].isdigit() for name in os.listdir("/dev"))
    return [str(number) for number in range(count)]


def _is_initialised() -> bool:
    import _ctypes

    try:
        handle = _ctypes.dlopen(CUDA_LIBRARY, os.RTLD_NOLOAD | os.RTLD_NOW)
    except OSError:  # it is not loaded
        return False
    try:
        return _has_context_state(handle)
    finally:
        _ctypes.dlclose(handle)


def _has_context_state(handle: int) -> bool:
    import ctypes

    context = ctypes.c_void_p()
    return bool(ctypes.CDLL(CUDA_LIBRARY, handle=handle).cuCtxGetCurrent(ctypes.byref(context)) == 0)


def _library() -> str:
    """Return the most likely one: those that can tell are asked, CuPy cannot."""
    torch = sys.modules.get("torch.cuda")
    if torch is not None and hasattr(torch, "is_initialized") and torch.is_initialized():
        return "torch"
    numba = sys.modules.get("numba.cuda.cudadrv.driver")
    if numba is not None and getattr(numba.driver, "is_initialized", False):
        return "numba"
    loaded = (name for module, name in _LIBRARIES.items() if module in sys.modules)
    return next(loaded, _UNKNOWN)


_LIBRARIES = {"cupy": "CuPy", "torch": "torch", "numba.cuda": "numba", "jax": "JAX", "tensorflow": "TensorFlow"}


_at_fork: str | None = None


def _about_to_fork() -> None:
    global _at_fork
    _at_fork = _lost or cuda_user()


def _in_child() -> None:
    global _lost
    _lost = _at_fork


os.register_at_fork(before=_about_to_fork, after_in_child=_in_child)
