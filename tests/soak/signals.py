"""Interrupts and kills that come at some moment of what the main thread does."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

from tests.waiting import is_running

ARRIVES = 10.0
"""Seconds within which an interrupt must come out of what it interrupts."""


def interrupted(action: Callable[[], Any], delay: float, *, group: bool, again: float | None = None) -> bool:
    """Call `action` and interrupt it `delay` seconds later, and once more after `again` seconds.

    Return whether it was still at work; AssertionError when the interrupt never comes out. With `group` the whole
    process group is interrupted, as by a terminal or a notebook.
    """
    presses = threading.Thread(target=_press, args=(delay, group, again), name="soak-press")
    failure: Exception | None = None
    at_work = True
    try:
        try:
            presses.start()
            action()
            at_work = False
        except Exception as error:
            failure, at_work = error, False
        time.sleep(delay + ARRIVES)
    except KeyboardInterrupt:
        pass
    else:
        failure = failure or AssertionError("the interrupt was swallowed")
    with contextlib.suppress(KeyboardInterrupt):  # the second one, if nobody took it
        presses.join()
    if failure is not None:
        raise failure
    return at_work


def _press(delay: float, group: bool, again: float | None) -> None:
    for pause in (delay, again):
        if pause is not None:
            time.sleep(pause)
            if group:
                os.killpg(os.getpgrp(), signal.SIGINT)
            else:
                os.kill(os.getpid(), signal.SIGINT)


@contextlib.contextmanager
def kill_meanwhile(whom: Callable[[], int | None], delay: float) -> Iterator[list[int]]:
    """Kill a process `delay` seconds into the block; yields the list of those killed, at the end one or none."""
    killed: list[int] = []
    over = threading.Event()

    def kill() -> None:
        over.wait(delay)
        pid = whom()
        if pid is not None and is_running(pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
                killed.append(pid)

    thread = threading.Thread(target=kill, name="soak-kill")
    thread.start()
    try:
        yield killed
    finally:
        over.set()
        thread.join()
