"""Which worker is given which task. Used by the pool's thread only.

A task is given ahead so that a worker need not wait for the pool between two tasks, more of them when they take next to
no time. It must not wait behind a long one while others are free, or behind one that waits for it: so it is taken back,
when another worker has nothing to do, or when it has waited for `PATIENCE` and another worker has room. When a worker
has told nothing for so long, all that it has not begun is taken back, and it gets one task ahead as at the beginning.
"""

import sys
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

from nbmp.pools.tasks import Job, Task
from nbmp.pools.worker import AHEAD, Worker

PATIENCE = 0.02
"""Seconds after which a task that was given ahead goes to any other worker with room, or waits again as it did."""


class Waiting:
    """The tasks that no worker has, in order.

    Parameters
    ----------
    workers : list of Worker
        The pool's own list, which changes.
    tasks_per_worker : int or None
        After so many a worker leaves.
    """

    def __init__(self, workers: list[Worker], tasks_per_worker: int | None) -> None:
        self._workers = workers
        self._tasks_per_worker = tasks_per_worker
        self._tasks: deque[Task] = deque()
        self._submitted = 0

    def __len__(self) -> int:
        return len(self._tasks)

    def __iter__(self) -> Iterator[Task]:
        return iter(self._tasks)

    def add(self, task: Task) -> None:
        """Take in a task that was submitted now."""
        self._submitted += 1
        task.number = self._submitted
        self._tasks.append(task)

    def clear(self) -> None:
        self._tasks.clear()

    def drop(self, job: Job) -> None:
        """Forget the tasks of a job."""
        self._tasks = deque(task for task in self._tasks if task.job is not job)

    def take_all_back(self, worker: Worker) -> None:
        """Take back what a worker has not begun, in its place."""
        while (task := worker.take_back()) is not None:
            task.sent_as = -1
            told(task.job.waits_again, task.index)
            self._tasks.append(task)
        self._tasks = deque(sorted(self._tasks, key=lambda task: task.number))

    def give_out(self, now: float) -> None:
        """Give each worker one task, then a second, then more to those whose tasks are quick."""
        for worker in self._workers:
            if worker.has_too_many() and now - worker.silent_since > PATIENCE:
                worker.ahead = AHEAD
                self.take_all_back(worker)
        wanting = [worker for worker in self._workers if worker.wants()]
        for room in range(1, AHEAD + 1):
            for worker in wanting:
                if len(worker.tasks) < room:
                    self._take_back_for(worker, now)
                    self._give_one(worker)
        for worker in wanting:
            self._fill(worker)

    def give(self, worker: Worker, now: float) -> None:
        """Give one worker, which has just done a task, as many as it may have."""
        if worker.wants():
            self._take_back_for(worker, now)
            self._fill(worker)

    def _fill(self, worker: Worker) -> None:
        """Give it as many as it may have, and leave their share to the others."""
        share = min(worker.ahead - len(worker.tasks), -(-len(self._tasks) // len(self._workers)))
        while share > 0 and not worker.leaving and self._give_one(worker):
            share -= 1

    def _give_one(self, worker: Worker) -> bool:
        """Return False when there is none, or no room for it."""
        while self._tasks:
            task = self._tasks.popleft()
            if task.sent_as < 0 and not told(task.job.begin, task.index):
                continue
            if not worker.give(task):
                self._tasks.appendleft(task)
                return False
            if self._tasks_per_worker is not None and worker.given >= self._tasks_per_worker:
                worker.leave()
            return True
        return False

    def _take_back_for(self, worker: Worker, now: float) -> None:
        """Put a task that waits behind another one back in front, if `worker` would begin it sooner."""
        for other in self._workers:
            if other is not worker and len(other.tasks) >= AHEAD and not other.leaving:
                if worker.tasks and now - other.tasks[-1].given_at < PATIENCE:
                    continue
                if worker.tasks and not self._tasks:
                    continue  # from behind one to behind another
                task = other.take_back()
                if task is not None:
                    self._tasks.appendleft(task)
                    return


def told(method: Callable[..., Any], *arguments: Any) -> Any:
    """Call a method of a job and return its answer. Whatever it raises, the pool goes on."""
    try:
        return method(*arguments)
    except BaseException:
        sys.excepthook(*sys.exc_info())
