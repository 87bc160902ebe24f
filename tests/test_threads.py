"""Threads that are started while interrupts come all run to their end."""

from __future__ import annotations

import signal
import threading
import time
from typing import Any

import pytest

from nbmp import threads
from tests.waiting import until

INTERRUPTS = 300


@pytest.mark.usefixtures("no_callbacks_of_the_collector")
def test_no_interrupt_keeps_a_thread_from_running() -> None:
    begun: list[None] = []
    asked = 0
    is_armed = False

    def interrupt(*_: Any) -> None:
        nonlocal is_armed
        if is_armed:
            is_armed = False
            raise KeyboardInterrupt

    earlier = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
    try:
        for _ in range(INTERRUPTS):
            try:
                is_armed = True
                while is_armed:
                    threads.start(begun.append, None, name="nbmp-test")
                    asked += 1
                    while len(begun) < asked - 5:
                        time.sleep(0.0001)
            except KeyboardInterrupt:
                continue
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, earlier)
    assert until(lambda: not [thread for thread in threading.enumerate() if thread.name == "nbmp-test"], 10)
    assert asked <= len(begun) <= asked + INTERRUPTS


def test_what_no_further_thread_can_be_made_for_runs_all_the_same(monkeypatch: Any) -> None:
    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    ran = threading.Event()
    monkeypatch.setattr(threading.Thread, "start", refuse)
    threads.start(ran.set, name="nbmp-test")
    assert ran.wait(10)
