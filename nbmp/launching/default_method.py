"""Which start method is used when none is asked for, and why.

The choice of `set_start_method` is nbmp's own: the standard library's is never touched, since it belongs to every
library of the process. Ranks and what they start inherit it.
"""

import sys
from types import FrameType
from typing import NamedTuple

from nbmp import platforms
from nbmp.errors import CudaForkError
from nbmp.launching.quiet import busy_elsewhere

METHODS = ("fork", "forkserver", "spawn")


class StartMethod(NamedTuple):
    """A start method and why it was taken."""

    method: str
    reason: str


_chosen: str | None = None


def set_start_method(method: str | None, force: bool = False) -> None:
    """Choose the start method of everything that is started without one.

    Parameters
    ----------
    method : {"fork", "forkserver", "spawn"}
        None, with `force`: back to `default_start_method`.

    Raises
    ------
    ValueError
        For an unknown method.
    RuntimeError
        When one was chosen before, unless `force` is given.
    """
    if _chosen is not None and not force:
        raise RuntimeError(f"context has already been set: the start method is {_chosen!r}; force=True changes it")
    if method is not None or not force:
        check_method(method)
    inherit(method)


def get_start_method(allow_none: bool = False) -> str | None:
    """Return the method of everything that is started without one; None, if allowed, when none was chosen.

    Unlike the standard library's, asking chooses nothing.
    """
    if _chosen is None and allow_none:
        return None
    return default_start_method().method


def get_all_start_methods() -> list[str]:
    """Return the methods that there are here; as in the standard library the first is the usual default."""
    return list(METHODS)


def inherit(method: str | None) -> None:
    """Know what the launching process has chosen."""
    global _chosen
    _chosen = method


def chosen() -> str | None:
    """Return what `set_start_method` has chosen."""
    return _chosen


def default_start_method() -> StartMethod:
    """Return the start method that a launch without one would use now, and the reason in words.

    What `set_start_method` has chosen; otherwise `fork` where it is safe: it is the fastest and ranks inherit
    everything. `forkserver` when CUDA is initialised in this process (the reason names the library that did it) or an
    OpenMP thread pool (libgomp) is alive, since a forked rank would fail or hang there; also when another thread is
    importing a module, or computes in threads of a library (OpenBLAS), and does not come to an end with it within two
    seconds. `spawn` outside Linux.
    """
    if _chosen is not None:
        return StartMethod(_chosen, "chosen by set_start_method")
    if sys.platform != "linux":
        return StartMethod("spawn", f"{sys.platform} has no safe fork")
    danger = platforms.unsafe_to_fork() or busy_elsewhere()
    if danger is not None:
        return StartMethod("forkserver", danger)
    return StartMethod("fork", "no CUDA and no OpenMP pool here")


def choose(asked: str | None) -> StartMethod:
    """Return the method asked for, or the default.

    Raises
    ------
    ValueError
        For an unknown method; names the known ones.
    CudaForkError
        When `fork` is asked for, or was chosen, and CUDA is initialised in this process.
    """
    if asked is not None:
        check_method(asked)
    if (asked or _chosen) == "fork":
        _refuse_fork()
        _warn_of_fork()
    return default_start_method() if asked is None else StartMethod(asked, "asked for")


def check_method(method: object) -> None:
    """Raise ValueError for an unknown method; names the known ones."""
    if method not in METHODS:
        raise ValueError(f"unknown start method {method!r}: it is one of {', '.join(METHODS)}")


def _refuse_fork() -> None:
    by = platforms.cuda_user()
    if by is not None:
        raise CudaForkError(
            f"CUDA is initialised in this process (by {by}), and forked ranks cannot use it: nothing was started. Use "
            "start_method='spawn' or 'forkserver', or none at all, which leaves the choice to nbmp; or restart the "
            "kernel and fork before anything touches the GPU"
        )


_ON_THE_WAY = ("nbmp", "multiprocessing", "contextlib", "IPython")
"""Packages that may lie between the user's line and a launch."""

_warned = False


def _warn_of_fork() -> None:
    global _warned
    danger = platforms.unsafe_to_fork()
    if danger is not None and not _warned:
        import warnings

        _warned = True
        text = f"fork was asked for, but {danger}; start_method='forkserver' is safe"
        warnings.warn(text, RuntimeWarning, stacklevel=_level_of_user())


def _level_of_user() -> int:
    """Return the `stacklevel` at which the caller's warning points to the user's line."""
    frame: FrameType | None = sys._getframe(1)
    level = 1
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] in _ON_THE_WAY:
        frame, level = frame.f_back, level + 1
    return level
