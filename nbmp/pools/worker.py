"""One worker, seen from the pool. Used by the pool's thread only.

The pool keeps the worker's end of the task channel as well. Through it a task is taken back that the worker has not
taken, and after the worker's end it is known which tasks it had begun: those that are not in the channel any more.
"""

import contextlib
import os
import time
from collections import deque
from collections.abc import Callable

from nbmp.channels import Channel
from nbmp.errors import SharedMemoryError
from nbmp.launching.channel import plain
from nbmp.launching.private import making
from nbmp.launching.record import RankRecord
from nbmp.messages import Message
from nbmp.pools.messages import FUNCTION, FUNCTION_NUMBER, KINDS, NUMBERS, STOP, WorkerEnds
from nbmp.pools.starting import Recipe
from nbmp.pools.tasks import Function, Task

TERM_SECONDS = 1.0
"""From SIGTERM to SIGKILL."""
LEAVE_SECONDS = 10.0
"""How long a worker that was told to leave may take for what it does at exit."""


AHEAD = 2
"""Tasks that a worker may have: one runs, one waits."""
QUICK_AHEAD = 32
"""The same while its tasks take next to no time; less than `NUMBERS`."""
QUICK_SECONDS = 0.001


class Worker:
    """A worker process and the tasks it has: one that runs and one that waits for it, more when they are quick."""

    def __init__(self, recipe: Recipe, slot: int, serial: int, on_end: Callable[["Worker"], None]) -> None:
        self.slot = slot
        self.serial = serial
        self.ready = False
        self.leaving = False
        """Whether it gets no further task."""
        self.given = 0
        self.tasks: deque[Task] = deque()
        """In the order in which they were given: the first one runs, or is about to."""
        self.ahead = AHEAD
        """Tasks that it may have."""
        self._told_at = 0.0
        self._sent = 0
        self._function: Function | None = None
        self._end_by: float | None = None
        self._told_to_stop = False
        with making() as register:
            self.channel, tasks = Channel.pair()
            self._functions, functions = Channel.pair()
            self._unread = Channel.of_fd(os.dup(tasks.fd))
            for channel in (self.channel, self._functions, self._unread):
                register(channel)
        ends = WorkerEnds(tasks, functions)
        try:
            self.context, initialized = recipe.start(slot, serial, ends, lambda: on_end(self))
        except BaseException:
            self.close()
            raise
        finally:
            ends.close()
        if not initialized:
            self._functions.send(recipe.pickled())

    @property
    def record(self) -> RankRecord:
        return self.context.ranks[0]

    def wants(self) -> bool:
        """Return whether it may get tasks and has used up half of them: so quick ones are given several at a time."""
        return len(self.tasks) <= self.ahead // 2 and self.ready and not self.leaving

    def has_too_many(self) -> bool:
        """Return whether it has tasks that would not be given ahead if they were not quick."""
        return len(self.tasks) > AHEAD

    @property
    def silent_since(self) -> float:
        """When it last told an outcome, or was given a task when it had none."""
        return max(self._told_at, self.tasks[0].given_at)

    def give(self, task: Task) -> bool:
        """Send a task; False when there is no room for it at this moment."""
        function = task.function
        try:
            if function is not None and function is not self._function:
                self._functions.send(plain(function.number), FUNCTION_NUMBER, wait=False)
                self._functions.send(function.parcel, FUNCTION, wait=False)
                self._function = function
            kind = task.kind + KINDS * (self._sent % NUMBERS)
            self.channel.send(task.parcel, kind, wait=False)
        except (OSError, SharedMemoryError):  # no room in the channel, or too much is under way: for now
            return False
        self._sent += 1
        task.sent_as = kind
        task.given_at = time.monotonic()
        self.tasks.append(task)
        self.given += 1
        return True

    def told(self, now: float) -> Task:
        """Return the task whose outcome has come: the first."""
        task = self.tasks.popleft()
        if now - self._told_at < QUICK_SECONDS or now - task.given_at < QUICK_SECONDS:
            self.ahead = min(2 * self.ahead, QUICK_AHEAD)
        elif self.ahead > AHEAD:  # perhaps: the thread of the pool may have had to wait for others
            self.ahead //= 2
        self._told_at = now
        return task

    def take_back(self) -> Task | None:
        """Take back the first task that the worker has not taken; None when there is none."""
        while (message := _next(self._unread)) is not None:
            if message.kind % KINDS == STOP:
                self._told_to_stop = False
            # What is unread was sent last and one after the other, fewer than `NUMBERS`; a task that runs may have been
            # sent under the same number, long before. It is not there if it was given up meanwhile.
            for task in reversed(self.tasks):
                if task.sent_as == message.kind:
                    self.tasks.remove(task)
                    self.given -= 1
                    return task
        return None

    def leave(self) -> None:
        """End when the tasks it has are done."""
        self.leaving = True
        if not self._told_to_stop:
            with contextlib.suppress(OSError):
                self.channel.send(plain(None), STOP, wait=False)
                self._told_to_stop = True

    def stop(self) -> None:
        """End now: SIGTERM, and a second later SIGKILL."""
        if not self.record.stopping:
            self.leaving = True
            self.record.stopping = True
            self.context.processes[0].terminate()
            self._end_by = time.monotonic() + TERM_SECONDS

    def look(self, now: float) -> None:
        """See to it that a worker that has to end does."""
        if self._end_by is not None and now >= self._end_by:
            if self.record.stopping:
                self.context.processes[0].kill()
                self._end_by = None
            else:
                self.stop()
        elif self.leaving and not self._told_to_stop and not self.record.stopping:
            self.leave()
        elif self._told_to_stop and not self.tasks and self._end_by is None and not self.record.stopping:
            self._end_by = now + LEAVE_SECONDS

    def close(self) -> None:
        for channel in (self.channel, self._functions, self._unread):
            channel.close()


def _next(channel: Channel) -> Message | None:
    try:
        return channel.receive(wait=False)
    except OSError:
        return None
