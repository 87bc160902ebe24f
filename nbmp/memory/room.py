"""Room for descriptors: what is done before a process runs out of them.

Caches are emptied first, then the soft limit is raised to the hard one, and only then it is an error, which says so.
"""

import errno
import os
import resource
from collections.abc import Callable
from typing import TypeVar

from nbmp import platforms

Result = TypeVar("Result")

when_short: list[Callable[[], None]] = []
"""Called when descriptors run out: to close what is not needed."""


def make_room(count: int, fd: int) -> None:
    """See to it that `count` descriptors can be opened now; tries it with duplicates of `fd`.

    Raises
    ------
    OSError
        EMFILE, with the limit and what to do.
    """
    spare: list[object] = []  # owners: an interrupt loses none
    for _ in range(count):
        with_room(_duplicate, fd, spare)


def _duplicate(fd: int, into: list[object]) -> None:
    into.extend(map(platforms.owner, map(os.dup, (fd,))))


def with_room(attempt: Callable[..., Result], *arguments: object) -> Result:
    """Return `attempt(*arguments)`, tried again with more room when descriptors run out."""
    for remedy in (*when_short, _raise_limit):
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
        raise OSError(errno.EMFILE, _explanation()) from None


def _raise_limit() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _explanation() -> str:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    return (
        f"Too many open files: this process may have {soft} (hard limit {hard}). Each shared array above 64 kB that it "
        "holds takes one or two of them: drop some, or raise the limit (ulimit -n, RLIMIT_NOFILE)"
    )
