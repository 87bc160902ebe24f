"""The exit of a process that has lent memory of its GPU: it waits, since that memory ends with it.

So do the events that say when what it sent on is complete.
"""

import logging
import time
from multiprocessing.util import Finalize

from nbmp.cuda.loans import loans
from nbmp.cuda.order import tickets
from nbmp.cuda.usage import holders
from nbmp.memory.segment import human

_log = logging.getLogger("nbmp")

_LAST = -50
"""As a priority at exit: after feeders have sent what was put (-5)."""
TELL_SECONDS = 1.0
"""After this long a line says what is waited for."""
_LOOK_SECONDS = 0.01

_timeout = 30.0


def set_exit_timeout(seconds: float) -> None:
    """Choose how long this process waits at its exit for those who still hold memory of its GPUs; at first 30 s.

    Ranks and workers that it starts begin with 30 s of their own. With 0 it does not wait, and says who holds.
    """
    global _timeout
    if not seconds >= 0:
        raise ValueError(f"a number of seconds is not negative: {seconds}")
    _timeout = seconds


def wait_for_borrowers() -> bool:
    """Wait until all that is lent has come back; False, with a warning that names who holds, when time is up."""
    end = time.monotonic() + _timeout
    tell = time.monotonic() + TELL_SECONDS
    while loans.sweep() or tickets.trim():
        now = time.monotonic()
        if now >= end:
            _log.warning("this process ends although %s; what they do with it from now on is undefined", _who())
            return False
        if now >= tell:
            _log.warning("waiting at exit, %g s at most, because %s", _timeout, _who())
            tell = end + 1
        time.sleep(min(_LOOK_SECONDS, max(0.0, end - now)))
    return True


def _who() -> str:
    """Say how much is held, and by whom."""
    held = list(loans)
    if not held:
        return "work that it asked of its GPU before it sent arrays is not done, or those are not received yet"
    pids = sorted({pid for loan in held for pid in holders(loan.segment.key)})
    size = sum(getattr(loan.thing, "size", 0) for loan in held)
    what = f"{len(held)} block{'s' if len(held) != 1 else ''} of its GPU memory ({human(size)})"
    if not pids:
        return f"{what} are under way in messages that nobody has received"
    return f"{what} are still held by process{'es' if len(pids) > 1 else ''} {', '.join(map(str, pids))}"


_waits: Finalize | None = None


def wait_at_exit() -> None:
    """Have this process wait at its exit: it lends something, or sends on what it has to finish."""
    global _waits
    if _waits is None:
        _waits = Finalize(None, wait_for_borrowers, exitpriority=_LAST)
