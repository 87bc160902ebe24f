"""Asking ranks where they are: in the launching process.

    any thread of the launching process              rank
      clears the stack file
      STACK_SIGNAL to the main thread           ──>  its Python handler writes the stacks of all threads
      reads                                     <──
    without an answer, when the main thread is inside C code
      FAULT_SIGNAL to one thread that sleeps    ──>  faulthandler writes its stack inside the signal's handler
      or is inside C code; then to the next
      reads                                     <──

All ranks are asked side by side. Before a thread gets a signal it is looked at: a process without the handler would die
of it, one that is stopped would keep it. So nothing is sent to a rank that is still starting, runs another program, is
stopped, or blocks the signal.

FAULT_SIGNAL must not come while a thread runs Python code (see `answering`). A main thread that has taken STACK_SIGNAL
runs none when, without an answer, it has used a tenth of a second of processor time (Python would have come to the
handler at once), or has not run at all for a tenth of a second, or has waited for the interpreter's lock for a second,
which then somebody holds in C code. Time alone tells nothing: the machine may be busy. Other threads are asked only
if they have not run for a while.

When faulthandler has come to its end is seen from outside: the kernel blocks a signal while its handler runs.
"""

import re
import threading
import time
from collections.abc import Generator, Sequence
from dataclasses import replace

from nbmp import platforms
from nbmp.launching.describing import describe, is_users, raw_stack
from nbmp.launching.frontends import Frontend
from nbmp.launching.interrupts import held_back
from nbmp.launching.left import left_by
from nbmp.launching.messages import END_OF_STACKS, FAULT_SIGNAL, STACK_SIGNAL
from nbmp.launching.private import in_forked_child
from nbmp.launching.record import RankRecord
from nbmp.launching.where.stacks import RankStack, ThreadStack
from nbmp.launching.where.waits import waits_for
from nbmp.platforms.threads import ThreadStatus

SECONDS = 2.0
"""How long ranks have to answer."""
IN_C_SECONDS = 0.1
"""Processor time, or sleep, without an answer after which a thread is known to be inside C code."""
LOCKED_SECONDS = 1.0
"""The same for a thread that comes up again and again, as one does that waits for the interpreter's lock."""
LOCKED_SWITCHES = 20
FEW = 3
"""Looks after which a thread that has taken FAULT_SIGNAL and written nothing has no Python code."""
MOST = 200
"""Threads of a rank that are asked."""

_THREAD = re.compile(r"^Thread (\d{1,10}) (.*)$", re.MULTILINE)
_STEP = 0.0005, 0.005
"""Shortest and longest pause between two looks."""

Steps = Generator[None, None, None]

_one_asks = threading.Lock()


def ask(records: Sequence[RankRecord], frontend: Frontend, seconds: float = SECONDS) -> list[RankStack]:
    """Return where these ranks are, in their order; within about `seconds`, whatever the ranks do.

    Callable from any thread. A rank without an answer has the reason in `unknown`.
    """
    deadline = time.monotonic() + seconds
    questions = [_Question(record) for record in records]
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

    def __init__(self, record: RankRecord) -> None:
        self.why = ""
        self._record = record
        self._pid = record.pid or 0
        self._told: list[tuple[ThreadStack, str]] = []

    def go(self) -> Steps:
        """Ask; each step is one look."""
        main = self._look_at_main()
        if main is None:
            return
        if main.blocked & _bit(STACK_SIGNAL):
            self._note(self._pid, "MainThread", unknown=f"its stack is not to be had: it blocks signal {STACK_SIGNAL}")
            return
        self._record.crash.clear()
        if not main.pending & _bit(STACK_SIGNAL):
            self._send(self._pid, STACK_SIGNAL)
        yield
        if (yield from self._is_in_c()):
            yield from self._ask_each()

    def give_up(self, seconds: float) -> None:
        """Time is over."""
        if not self._told:
            self.why = f"does not answer within {seconds:g} s"
            now = platforms.thread_status(self._pid, self._pid)
            if now is not None and now.state == "D":
                self.why += ": it hangs in the kernel (state D: a disk or a device that does not answer)"

    def answer(self, frontend: Frontend) -> RankStack:
        threads = [_described(thread, text, frontend) for thread, text in self._told]
        record = self._record
        if threads and threads[0].native_id == record.pid:
            threads[0] = replace(threads[0], left_by=left_by(record.notes.awaited()))
        return RankStack(
            record.shown_as, record.pid, record.state, record.seconds, () if self.why else tuple(threads), self.why
        )

    def _is_in_c(self) -> Generator[None, None, bool]:
        """Wait for the answer of the Python handler; return whether the main thread is in C code and gives none."""
        taken: tuple[float, float, int] | None = None
        asleep_since, switches = time.monotonic(), -1
        while True:
            text = self._record.crash.text()
            if text.endswith(END_OF_STACKS):
                self._take_all(text.removesuffix(END_OF_STACKS))
                return False
            main, now = self._look_at_main(), time.monotonic()
            if main is None:
                return False
            if main.state != "S" or main.switches != switches:
                asleep_since, switches = now, main.switches
            if not main.pending & _bit(STACK_SIGNAL):
                run = platforms.cpu_seconds(self._pid, self._pid)
                begun, run_before, switches_before = taken = taken or (now, run, main.switches)
                if run - run_before > IN_C_SECONDS or now - asleep_since > IN_C_SECONDS:
                    return True
                if now - begun > LOCKED_SECONDS and main.switches - switches_before > LOCKED_SWITCHES:
                    return True
            yield

    def _ask_each(self) -> Steps:
        """Ask the threads one by one: the main thread, which is in C code, and those that sleep."""
        before = {
            thread: platforms.thread_status(self._pid, thread) for thread in platforms.threads_of(self._pid)[:MOST]
        }
        yield from self._ask(self._pid)
        if not self._told or self.why:
            return
        main = before.get(self._pid)
        for thread, earlier in before.items():
            if any(noted.native_id == thread for noted, _ in self._told):
                continue
            now = platforms.thread_status(self._pid, thread)
            if now is None or earlier is None or main is None:
                continue
            if (now.state, now.switches) == ("S", earlier.switches):
                yield from self._ask(thread)
            elif now.name != main.name:  # it has a name of its own, as threads of Python have
                self._note(thread, _name(now.name), unknown="runs; not asked while the main thread is in C code")

    def _ask(self, thread: int) -> Steps:
        is_main = thread == self._pid
        status = platforms.thread_status(self._pid, thread)
        if status is None or (status.blocked | ~status.caught) & _bit(FAULT_SIGNAL):
            return
        self._record.crash.clear()
        if not status.pending & _bit(FAULT_SIGNAL) and not self._send(thread, FAULT_SIGNAL):
            return
        looks, begun = 0, time.monotonic()
        while looks < FEW or (is_main and time.monotonic() < begun + IN_C_SECONDS):
            yield
            text = self._record.crash.text()
            if END_OF_STACKS in text:  # the main thread has come out of its C code meanwhile, and answers in full
                self._take_all(text.partition(END_OF_STACKS)[0])
                return
            status = platforms.thread_status(self._pid, thread)
            if status is None or status.state in "Tt":
                return
            if (status.pending | status.blocked) & _bit(FAULT_SIGNAL):
                continue
            if text:
                self._note(thread, "MainThread" if is_main else _name(status.name), text)
                return
            looks += 1
        if is_main:
            self.why = f"gives no stack: its code handles signal {STACK_SIGNAL} itself, or has closed nbmp's files"

    def _take_all(self, text: str) -> None:
        """Take the answer of the Python handler, instead of all others."""
        self._told.clear()
        parts = _THREAD.split(text)[1:]
        told = list(zip(map(int, parts[::3]), parts[1::3], parts[2::3], strict=True))
        for thread, name, stack in sorted(told, key=lambda each: each[0] != self._pid):
            self._note(thread, name, stack)

    def _note(self, thread: int, name: str, text: str = "", *, unknown: str = "") -> None:
        sleeps = bool(text) and platforms.waits_for_lock(self._pid, thread)
        found = ThreadStack(name, thread, (), None, (), "a lock" if sleeps else "", unknown)
        self._told.append((found, text))

    def _send(self, thread: int, number: int) -> bool:
        process = self._record.process
        return process is not None and process._signal_thread(thread, number)

    def _look_at_main(self) -> ThreadStatus | None:
        """Return how the main thread is; None, and the reason is noted, when it cannot answer."""
        status = None if self._record.ended else platforms.thread_status(self._pid, self._pid)
        if status is None or status.state in "ZX":
            self.why = _ended(self._record)
        elif status.state == "T":
            self.why = f"is stopped by a signal and tells nothing until it goes on (kill -CONT {self._pid})"
        elif status.state == "t":
            self.why = "is held by a debugger and tells nothing until it goes on"
        elif not status.caught & _bit(STACK_SIGNAL):
            self.why = (
                "is starting: its interpreter runs no code of yours yet"
                if self._record.state == "starting"
                else f"cannot be asked: it runs another program, or has taken away the handler of signal {STACK_SIGNAL}"
            )
        return None if self.why else status


def _described(thread: ThreadStack, text: str, frontend: Frontend) -> ThreadStack:
    raw = raw_stack(text)
    own = [is_users(frame.filename) for frame in raw]
    frames = [describe(frame, frontend) for frame in raw]
    return replace(
        thread,
        frames=tuple(frame for frame, is_own in zip(frames, own, strict=True) if is_own),
        inside=frames[-1] if frames and not own[-1] else None,
        all_frames=tuple(frames),
        # that the system sees a lock counts only where the user's own code is innermost
        waits_for=waits_for(raw, own) or (thread.waits_for if raw and own[-1] else ""),
    )


def _bit(number: int) -> int:
    return 1 << (number - 1)


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
