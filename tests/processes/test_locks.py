"""Locks of a process that is no rank, and interrupts."""

from __future__ import annotations

import signal
from typing import Any

import pytest

import nbmp


class Interrupted(Exception):
    """What a signal handler of the user's raises."""


@pytest.mark.parametrize("make", [nbmp.Lock, nbmp.RLock, nbmp.Condition])
def test_an_interrupt_in_a_block_leaves_no_lock_taken(make: Any) -> None:
    def stop(*_: object) -> None:
        raise Interrupted

    lock: Any = make()
    many = [0] * 3_000_000
    before = signal.signal(signal.SIGALRM, stop)
    try:
        with pytest.raises(Interrupted):
            signal.setitimer(signal.ITIMER_REAL, 0.1)
            while True:
                with lock:
                    None in many  # noqa: B015 - one step of Python's, in which it does not look for signals
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert getattr(lock, "_lock", lock)._semlock._count() == 0
