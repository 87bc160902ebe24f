"""Where a rank is, told whatever its interpreter does. Runs in the rank.

    a fatal signal     the stack of the thread that got it
    STACK_SIGNAL       the stack of the thread that got it; the launching process sends it to one after the other

Both are written by faulthandler, inside the signal's handler, to the rank's stack file: with the interpreter's lock
held in C code as well. A thread writes of itself alone: to walk the stack of another that runs meanwhile may end in a
crash. System calls of Python go on as if nothing had been.
"""

import faulthandler
import sys
import threading
from contextlib import suppress

from nbmp import platforms
from nbmp.launching.messages import STACK_SIGNAL


def answer(stacks: int) -> None:
    """Write stacks to this descriptor from here on."""
    faulthandler.enable(stacks, all_threads=False)
    faulthandler.register(STACK_SIGNAL, file=stacks, all_threads=False)
    if sys.version_info < (3, 14):
        _name_threads()


def _name_threads() -> None:
    """Give threads to come their names for the system to see, as Python does from 3.14 on."""
    setting: str = "_set_native_id"  # what a thread does first; private, so there may be none one day
    original = getattr(threading.Thread, setting, None)
    if original is None or hasattr(original, "by_nbmp"):  # a rank that another one forked has it already
        return

    def set_native_id(thread: threading.Thread) -> None:
        original(thread)
        with suppress(OSError):
            platforms.name_this_thread(thread.name)

    vars(set_native_id)["by_nbmp"] = True
    setattr(threading.Thread, setting, set_native_id)
