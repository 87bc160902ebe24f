"""Where a rank is, told whatever it does. Runs in the rank.

    STACK_SIGNAL     a handler in Python writes the stacks of all threads: the usual way, safe at any time. Whatever
                     Python itself waits for is interrupted for it and goes on as if nothing had been
    FAULT_SIGNAL     faulthandler writes the stack of the one thread that gets it, inside the signal's handler: with
                     the interpreter's lock held in C code as well. Not safe while a thread runs Python code: in the
                     middle of a call its frames are in disorder (measured: one question in 50 to 3,000 kills a rank
                     that calls functions all the time). So the launching process sends it only to threads that are
                     inside C code for long
    a fatal signal   faulthandler, likewise

All is written to the rank's stack file.
"""

import faulthandler
import gc
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from types import FrameType

from nbmp import platforms
from nbmp.launching.messages import END_OF_STACKS, FAULT_SIGNAL, STACK_SIGNAL

DEPTH = 200
"""Frames of a thread that are told, the innermost ones."""


def answer(stacks: int) -> None:
    """Write stacks to this descriptor from here on."""
    faulthandler.enable(stacks, all_threads=False)
    faulthandler.register(FAULT_SIGNAL, file=stacks, all_threads=False)
    signal.signal(STACK_SIGNAL, partial(_tell, stacks))
    if sys.version_info < (3, 14):
        _name_threads()


def _tell(stacks: int, number: int, main: FrameType | None) -> None:
    with suppress(Exception), _no_collection():
        frames = sys._current_frames()
        known = dict(threading._active)  # type: ignore[attr-defined]  # `enumerate` would wait for its lock
        frames[threading.main_thread().ident or 0] = main or frames[threading.get_ident()]
        told = [
            f"Thread {thread.native_id} {thread.name}\n{_lines(frames[ident])}"
            for ident, thread in known.items()
            if ident in frames
        ]
        os.write(stacks, ("".join(told) + END_OF_STACKS).encode(errors="backslashreplace"))


@contextmanager
def _no_collection() -> Iterator[None]:
    """Collect no garbage in this block.

    To look at a frame makes an object of it. Python 3.11 may collect garbage at that very moment, and let other threads
    run for it: then the frame may be over (a crash), or they wait for the lock that `_current_frames` has (CPython's
    issue 106883, mended in part by 3.11.9).
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _lines(frame: FrameType | None) -> str:
    """Return a stack as faulthandler writes it, the innermost frame first."""
    lines: list[str] = []
    while frame is not None and len(lines) < DEPTH:
        lines.append(f'  File "{frame.f_code.co_filename}", line {frame.f_lineno} in {frame.f_code.co_name}\n')
        frame = frame.f_back
    return "".join(lines)


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
