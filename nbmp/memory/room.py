"""Room for descriptors: what is done before a process runs out of them.

What is kept for reuse takes a small part of the limit only, and what a message can do without it gives up when a large
part is taken (see `is_scarce`). When descriptors run out all the same, caches are emptied first, then the soft limit is
raised to the hard one, and only then it is an error, which says so.
"""

import errno
import os
import resource
from collections.abc import Callable
from itertools import repeat
from typing import TypeVar

from nbmp import platforms
from nbmp.errors import OpenFilesError

Result = TypeVar("Result")

KEPT_SHARE = 8
"""Each cache keeps at most the limit divided by this."""
LIVE_SHARE = 2
"""Descriptors are scarce when more than the limit divided by this are open."""
LIVE_COUNT = 16_384
"""Or more than this: what they lead to is mapped, and a process may have 65,530 mappings (vm.max_map_count)."""

when_short: list[Callable[[], None]] = []
"""Called when descriptors run out: to close what is not needed."""


def kept_count(most: int) -> int:
    """Return how many things with a descriptor a cache may keep: `most`, or fewer under a low limit."""
    return min(most, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // KEPT_SHARE)


def is_scarce(fd: int) -> bool:
    """Return whether descriptors are scarce, given one opened just now: its number is the lowest that was free."""
    return fd >= min(LIVE_COUNT, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // LIVE_SHARE)


def make_room(count: int, fd: int) -> None:
    """See to it that `count` descriptors can be opened now; tries it with duplicates of `fd`.

    Raises
    ------
    OpenFilesError
        EMFILE, with the limit and what to do.
    """
    with_room(_duplicate, fd, count)


def _duplicate(fd: int, count: int) -> None:
    spare: list[object] = []  # owners: an interrupt loses none
    spare.extend(map(platforms.owner, map(os.dup, repeat(fd, count))))


def with_room(attempt: Callable[..., Result], *arguments: object) -> Result:
    """Return `attempt(*arguments)`, tried again with more room when descriptors run out."""
    for remedy in (*when_short, raise_limit):
        try:
            return attempt(*arguments)
        except OSError as error:
            if error.errno != errno.EMFILE:
                raise
        remedy()
    try:
        return attempt(*arguments)
    except OSError as error:
        if error.errno != errno.EMFILE:
            raise
        raise OpenFilesError(errno.EMFILE, _explanation()) from None


def raise_limit() -> bool:
    """Raise the soft limit of open files to the hard one; return False when it is there already."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return soft != hard


def _explanation() -> str:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    return (
        f"Too many open files: this process may have {soft} (hard limit {hard}). Each shared array above 64 kB that it "
        "holds takes one or two of them: drop some, or raise the limit (ulimit -n, RLIMIT_NOFILE)"
    )
