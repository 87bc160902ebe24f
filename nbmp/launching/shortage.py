"""What a system that ran out of something says when ranks are started, put so that a person can act on it."""

import contextlib
import errno
import os
import resource
from collections.abc import Iterator

from nbmp.errors import StartError


@contextlib.contextmanager
def explained() -> Iterator[None]:
    """Raise StartError, with the limit and what to do, for errors that tell of a shortage."""
    try:
        yield
    except OSError as error:
        reason = explanation(error.errno or 0)
        if reason is None:
            raise
        raise StartError(f"no rank could be started: {reason}") from error
    except RuntimeError as error:
        if "start new thread" not in str(error):
            raise
        reason = explanation(errno.EAGAIN)
        raise StartError(f"no rank could be started: {reason}") from error


def explanation(number: int) -> str | None:
    """Return what this error number means for a launch, None when it tells of no shortage."""
    if number == errno.EMFILE:
        return (
            f"this process may have no more than {_limit(resource.RLIMIT_NOFILE)} open files, and a rank takes about "
            "eight of them: start fewer ranks, close files, or raise the limit (ulimit -n)"
        )
    if number == errno.ENFILE:
        return "the system has no more open files to give (sysctl fs.file-max): start fewer ranks"
    if number == errno.EAGAIN:
        return (
            f"the system gives no further process or thread. This user may have {_limit(resource.RLIMIT_NPROC)} "
            "(ulimit -u), and a container may set a limit of its own (pids.max): start fewer ranks, give them fewer "
            "threads, or raise the limit"
        )
    if number == errno.ENOMEM:
        return f"{os.strerror(number)}: free some, start fewer ranks, or use start_method='forkserver'"
    return None


def _limit(which: int) -> str:
    soft, _ = resource.getrlimit(which)
    return "any number" if soft == resource.RLIM_INFINITY else str(soft)
