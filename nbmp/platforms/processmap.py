"""What this process has mapped, and where its threads wait, read from /proc/self."""

import os
import time
from functools import lru_cache

Range = tuple[int, int]

LOOKS = 25


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
    """Return whether a native thread of this process waits in code of one of these address ranges.

    A thread that is running has no readable position: one of a pool that still spins after its last region, or one of
    somebody else's. It is looked at again until it sleeps, `LOOKS` times in 2 ms steps; then it is counted as inside.
    """
    for _ in range(LOOKS):
        native = set(os.listdir("/proc/self/task")) - _python_threads()
        positions = [_position(thread) for thread in native]
        if any(low <= at < high for at in positions if at for low, high in ranges):
            return True
        if None not in positions:
            return False
        time.sleep(0.002)
    return True


def _python_threads() -> set[str]:
    import threading

    return {str(thread.native_id) for thread in threading.enumerate()}


def _position(thread: str) -> int | None:
    """Return the address at which a thread sleeps; None when it runs, 0 when it has ended or the system hides it."""
    try:
        with open(f"/proc/self/task/{thread}/syscall") as file:
            words = file.read().split()
    except OSError:
        return 0
    return int(words[-1], 16) if words and words[0] != "running" else None
