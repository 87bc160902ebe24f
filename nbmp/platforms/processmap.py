"""What this process has mapped and opened, and where its threads wait, read from /proc/self."""

import os
from functools import lru_cache

Range = tuple[int, int]


@lru_cache(maxsize=1)
def mapped_libraries(name: str, modules: int) -> list[Range]:
    """Return the address ranges of executable mappings of files whose base name starts with `name`.

    Read again (half a millisecond) when `modules`, the number of imported modules, has changed.
    """
    ranges = []
    with open("/proc/self/maps") as maps:
        for line in maps:
            if name in line and os.path.basename(line.rstrip()).startswith(name) and "x" in line.split(None, 2)[1]:
                low, high = line.split(None, 1)[0].split("-")
                ranges.append((int(low, 16), int(high, 16)))
    return ranges


def thread_inside(ranges: list[Range]) -> bool:
    """Return whether a thread of this process waits in, or ran a moment ago in, code of one of these address ranges.

    A thread that is running when asked has no readable position; a pool thread that still spins after its last region
    shows only once it sleeps, so a running native thread is counted as inside.
    """
    native = set(os.listdir("/proc/self/task")) - _python_threads()
    return any(_position(thread, ranges) for thread in native)


def opened_devices(prefix: str) -> bool:
    """Return whether a file whose path starts with `prefix` is open in this process."""
    for fd in os.listdir("/proc/self/fd"):
        try:
            if os.readlink(f"/proc/self/fd/{fd}").startswith(prefix):
                return True
        except OSError:
            pass  # closed meanwhile
    return False


def _python_threads() -> set[str]:
    import threading

    return {str(thread.native_id) for thread in threading.enumerate()}


def _position(thread: str, ranges: list[Range]) -> bool:
    try:
        with open(f"/proc/self/task/{thread}/syscall") as file:
            words = file.read().split()
    except OSError:
        return False  # the thread has ended, or the system hides it
    if not words or words[0] == "running":
        return True
    counter = int(words[-1], 16)
    return any(low <= counter < high for low, high in ranges)
