"""The bell: what is waited for while another thread changes it, interrupts included."""

from __future__ import annotations

import threading
from pathlib import Path

from nbmp.waiting import Bell
from tests import scripts


def test_a_ring_wakes_all_that_wait_and_they_look_again() -> None:
    bell = Bell()
    there: list[int] = []
    woken: list[bool] = []
    threads = [threading.Thread(target=lambda: woken.append(bell.wait_for(lambda: len(there) == 2))) for _ in range(3)]
    for thread in threads:
        thread.start()
    for item in range(2):
        there.append(item)
        bell.ring()
    for thread in threads:
        thread.join()
    assert woken == [True] * 3


def test_a_wait_ends_at_its_time_and_says_whether_the_condition_is_true() -> None:
    assert Bell().wait_for(lambda: False, 0.01) is False
    assert Bell().wait_for(lambda: False, 0) is False
    assert Bell().wait_for(lambda: True, 0) is True


def test_whoever_rings_never_waits_for_a_thread_that_was_interrupted(tmp_path: Path) -> None:
    """With a condition variable in its place the ringing thread stands still after some hundred interrupts."""
    told = scripts.output(
        tmp_path,
        """
        import os, signal, threading, time
        from nbmp.waiting import Bell

        bell, rings, over = Bell(), 0, False
        def ring():
            global rings
            while not over:
                rings += 1
                bell.ring()
        def press():
            while not over:
                time.sleep(0.001)
                os.kill(os.getpid(), signal.SIGINT)
        threads = [threading.Thread(target=ring), threading.Thread(target=press)]
        interrupted = 0
        while interrupted < 1500:
            try:
                for thread in threads:
                    if thread.ident is None:
                        thread.start()
                while True:
                    now = rings
                    bell.wait_for(lambda: rings > now)
            except KeyboardInterrupt:
                interrupted += 1
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        now = rings
        print(bell.wait_for(lambda: rings > now, 20))
        over = True
        """,
    )
    assert told == "True\n"
