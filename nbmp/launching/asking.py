"""Asking ranks where they are: in the launching process.

    any thread of the launching process             rank
      clears the stack file
      STACK_SIGNAL to one thread               ──>  its handler writes that thread's stack, whatever the thread does
      looks at the thread's signal mask until
      the handler has come back, reads         <──

All ranks are asked side by side, the threads of a rank one after the other, the main thread first. Before a thread is
asked it is looked at: a process without the handler would die of the signal, one that is stopped would keep it. So
nothing is sent to a rank that is still starting, runs another program, is stopped, or blocks the signal.

When a stack is complete is seen from outside: the kernel blocks a signal while its handler runs. What is there when
something was written, and the signal neither waits nor is blocked any more, is all.
"""

import threading
import time
from collections.abc import Generator, Sequence
from dataclasses import replace

from nbmp import platforms
from nbmp.launching.describing import describe, is_users, raw_stack
from nbmp.launching.frontends import Frontend
from nbmp.launching.interrupts import held_back
from nbmp.launching.messages import STACK_SIGNAL
from nbmp.launching.private import in_forked_child
from nbmp.launching.record import RankRecord
from nbmp.launching.stacks import RankStack, ThreadStack
from nbmp.launching.waits import waits_for

SECONDS = 2.0
"""How long ranks have to answer."""
FEW = 3
"""Looks after which a thread that is not the main one, and has written nothing, has no Python code."""
TAKEN_SECONDS = 0.5
"""How long after the signal was taken its handler's first word may come."""
MOST = 200
"""Threads of a rank that are asked."""

_BIT = 1 << (STACK_SIGNAL - 1)
_STEP = 0.0005, 0.005
"""Shortest and longest pause between two looks."""

_one_asks = threading.Lock()


def ask(
    records: Sequence[RankRecord], frontend: Frontend, seconds: float = SECONDS, *, main_only: bool = False
) -> list[RankStack]:
    """Return where these ranks are, in their order; within about `seconds`, whatever the ranks do.

    Callable from any thread. A rank without an answer has the reason in `unknown`.
    """
    deadline = time.monotonic() + seconds
    questions = [_Question(record, main_only) for record in records]
    with held_back() as presses:
        if _one_asks.acquire(timeout=max(0.0, seconds)):
            try:
                going = [(question, question.go()) for question in questions]
                pause = _STEP[0]
                while going and time.monotonic() < deadline and not presses.came:
                    going = [(question, steps) for question, steps in going if next(steps, "over") != "over"]
                    time.sleep(pause if going else 0)
                    pause = min(2 * pause, _STEP[1])
                for question, steps in going:
                    steps.close()
                    question.give_up(seconds)
            finally:
                _one_asks.release()
        else:
            for question in questions:
                question.why = "was not asked: others are being asked all the time"
    return [question.answer(frontend) for question in questions]


class _Question:
    """One rank that is asked."""

    def __init__(self, record: RankRecord, main_only: bool) -> None:
        self.why = ""
        self._record = record
        self._main_only = main_only
        self._pid = record.pid or 0
        self._told: list[tuple[ThreadStack, str]] = []

    def go(self) -> Generator[None, None, None]:
        """Ask thread after thread; each step is one look."""
        if self._record.ended:
            self.why = _ended(self._record)
            return
        for thread in platforms.threads_of(self._pid)[: 1 if self._main_only else MOST]:
            yield from self._ask(thread)
            if self.why:
                return
        if not self._told:
            self.why = _ended(self._record)

    def give_up(self, seconds: float) -> None:
        """Time is over."""
        if not self._told:
            self.why = f"does not answer within {seconds:g} s"
            now = platforms.thread_status(self._pid, self._pid)
            if now is not None and now.state == "D":
                self.why += ": it hangs in the kernel (state D: a disk or a device that does not answer)"

    def answer(self, frontend: Frontend) -> RankStack:
        threads = tuple(_described(thread, text, frontend) for thread, text in self._told)
        record = self._record
        return RankStack(
            record.shown_as, record.pid, record.state, record.seconds, () if self.why else threads, self.why
        )

    def _ask(self, thread: int) -> Generator[None, None, None]:
        is_main = thread == self._pid
        status = platforms.thread_status(self._pid, thread)
        if status is None or (is_main and not self._is_fit(status.state, status.caught)):
            return
        found = ThreadStack("MainThread" if is_main else _name(status.name), thread, (), None, ())
        if status.blocked & _BIT:
            if is_main:
                why = f"its stack is not to be had: it blocks signal {STACK_SIGNAL}"
                self._told.append((replace(found, unknown=why), ""))
            return
        stacks = self._record.crash
        stacks.clear()
        process = self._record.process
        if not status.pending & _BIT and (process is None or not process._signal_thread(thread, STACK_SIGNAL)):
            return
        looks, taken_at = 0, None
        while is_main or looks < FEW:
            yield
            text = stacks.text()
            status = platforms.thread_status(self._pid, thread)
            if status is None:
                return
            if is_main and status.state in "Tt":
                self._is_fit(status.state, status.caught)
                return
            if (status.pending | status.blocked) & _BIT:
                continue
            if text:
                sleeps = status.state == "S" and platforms.waits_for_lock(self._pid, thread)
                self._told.append((replace(found, waits_for="a lock" if sleeps else ""), text))
                return
            looks += 1
            taken_at = taken_at or time.monotonic()
            if time.monotonic() > taken_at + TAKEN_SECONDS:
                self.why = f"gives no stack: its code handles signal {STACK_SIGNAL} itself"
                return

    def _is_fit(self, state: str, caught: int) -> bool:
        """Return whether it can answer; the reason is noted if not."""
        if state == "T":
            self.why = f"is stopped by a signal and tells nothing until it goes on (kill -CONT {self._pid})"
        elif state == "t":
            self.why = "is held by a debugger and tells nothing until it goes on"
        elif state in "ZX":
            self.why = "has just ended"
        elif not caught & _BIT:
            self.why = (
                "is starting: its interpreter runs no code of yours yet"
                if self._record.state == "starting"
                else f"cannot be asked: it runs another program, or has taken away the handler of signal {STACK_SIGNAL}"
            )
        return not self.why


def _described(thread: ThreadStack, text: str, frontend: Frontend) -> ThreadStack:
    raw = raw_stack(text)
    own = [is_users(frame.filename) for frame in raw]
    frames = [describe(frame, frontend) for frame in raw]
    # a lock of C code: only if the user's code itself is innermost, or the library's is not known to wait for it
    return replace(
        thread,
        frames=tuple(frame for frame, is_own in zip(frames, own, strict=True) if is_own),
        inside=frames[-1] if frames and not own[-1] else None,
        all_frames=tuple(frames),
        waits_for=waits_for(raw, own) or (thread.waits_for if raw and own[-1] else ""),
    )


def _ended(record: RankRecord) -> str:
    if not record.ended:
        return "has just ended"
    return f"has ended: {record.failure.summary if record.failure is not None else record.state}"


def _name(name: str) -> str:
    return name if len(name.encode()) < 15 else f"{name}\N{HORIZONTAL ELLIPSIS}"


def _forget() -> None:
    global _one_asks
    _one_asks = threading.Lock()


in_forked_child(_forget)
