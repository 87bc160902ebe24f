"""Which start method is used when none is asked for, and why."""

import sys
from typing import NamedTuple

from nbmp import platforms

METHODS = ("fork", "forkserver", "spawn")


class StartMethod(NamedTuple):
    """A start method and why it was taken."""

    method: str
    reason: str


def default_start_method() -> StartMethod:
    """Return the start method that a launch without one would use now, and the reason in words.

    `fork` where it is safe: it is the fastest and ranks inherit everything. `forkserver` when CUDA is initialised in
    this process or an OpenMP thread pool (libgomp) is alive, since a forked rank would fail or hang there. `spawn`
    outside Linux.
    """
    if sys.platform != "linux":
        return StartMethod("spawn", f"{sys.platform} has no safe fork")
    danger = platforms.unsafe_to_fork()
    if danger is not None:
        return StartMethod("forkserver", danger)
    return StartMethod("fork", "no CUDA and no OpenMP pool here")


def choose(asked: str | None) -> StartMethod:
    """Return the method asked for, or the default.

    Raises
    ------
    ValueError
        For an unknown method; names the known ones.
    """
    if asked is None:
        return default_start_method()
    if asked not in METHODS:
        raise ValueError(f"unknown start method {asked!r}: it is one of {', '.join(METHODS)}")
    if asked == "fork":
        _warn_of_fork()
    return StartMethod(asked, "asked for")


_warned = False


def _warn_of_fork() -> None:
    global _warned
    danger = platforms.unsafe_to_fork()
    if danger is not None and not _warned:
        import warnings

        _warned = True
        warnings.warn(
            f"fork was asked for, but {danger}; start_method='forkserver' is safe", RuntimeWarning, stacklevel=5
        )
