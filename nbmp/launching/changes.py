"""Waiting for what becomes of ranks, in the launching process."""

import math
import threading
import time
from collections.abc import Callable

from nbmp.launching.frontends import Frontend
from nbmp.launching.interrupts import LOOK_SECONDS, Presses


class Changes:
    """Something happens to the ranks of one launch: whoever changes what is known of them notifies all on `news`."""

    def __init__(self, frontend: Frontend) -> None:
        self.news = threading.Condition()
        self._frontend = frontend

    def wait(self, is_met: Callable[[], object], seconds: float | None, *, looks: bool = False) -> None:
        """Wait until `is_met()`, at most `seconds`.

        With `looks` it may come true without news. Elsewhere than in the main thread no interrupt is looked for.
        """
        deadline = math.inf if seconds is None else time.monotonic() + seconds
        is_main = threading.current_thread() is threading.main_thread()
        look = LOOK_SECONDS if is_main or looks else threading.TIMEOUT_MAX
        while True:
            with self.news:
                left = deadline - time.monotonic()
                if is_met() or left <= 0 or (self.news.wait(min(left, look)) and is_met()):
                    return
            if is_main:
                self._frontend.while_waiting()

    def wait_or_raise(self, is_met: Callable[[], object], seconds: float | None, presses: Presses) -> None:
        """As `wait`; an interrupt that comes is raised."""
        begun = time.monotonic()
        while True:
            left = None if seconds is None else begun + seconds - time.monotonic()
            self.wait(lambda: is_met() or presses.came > 0, left)
            if not presses.came:
                return
            presses.deliver()
