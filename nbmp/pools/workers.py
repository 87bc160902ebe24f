"""The workers of one pool and the thread that gives them their tasks.

    any thread                      the pool's thread                          worker
      submit, stop, close, ...  ──>   waiting tasks                              one task runs, one may wait
      (a request and a wake-up)       gives each worker one, then a second  ──>
                                      outcomes: `Job.done`, `Job.failed`    <──
      supervisor of a worker
        "it has ended"          ──>   what it had begun fails, the rest goes
                                      to others; another worker is started

All state belongs to the thread, so there is no lock to be lost; other threads read a few flags. Every worker has
channels of its own, so a worker that dies can block nobody.
"""

import logging
import os
import selectors
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any

from nbmp.errors import BrokenPoolError
from nbmp.launching.frontends import Frontend
from nbmp.launching.private import making
from nbmp.launching.stopping import KILL_SECONDS
from nbmp.messages import Message
from nbmp.pools.failures import exit_error, initializer_error, start_error, task_error, unread_error
from nbmp.pools.giving import PATIENCE, Waiting, told
from nbmp.pools.messages import BROKEN, RAISED, READY, RETURNED
from nbmp.pools.requests import Requests
from nbmp.pools.starting import Recipe
from nbmp.pools.tasks import Job, Task
from nbmp.pools.watched import Watched
from nbmp.pools.worker import TERM_SECONDS, Worker
from nbmp.waiting import Bells

LOOK_SECONDS = 0.1
"""How often is looked whether a worker that has to end has ended, or whether there is room again."""
FAILED_STARTS = 2
"""After so many workers in a row have ended before they were ready, the pool is broken."""

_log = logging.getLogger("nbmp")
_KINDS = (READY, BROKEN, RETURNED, RAISED)
"""What a worker sends."""


class Workers(Watched):
    """The workers, followed by a thread of this object's until all have ended.

    Attributes
    ----------
    started : int
        How many workers there were so far.
    broken : BrokenPoolError or None
        Why nothing can be submitted any more.
    closed : bool
        Whether `close` or `terminate` was called.
    bells : Bells
        Of those who wait for what jobs are told; rung when all that is there was told, and before the user's code.
    """

    def __init__(self, recipe: Recipe, frontend: Frontend, tasks_per_worker: int | None) -> None:
        super().__init__(recipe, frontend)
        self._thread = threading.Thread(target=self._run, name="nbmp-pool", daemon=True)
        self.started = 0
        self.broken: BrokenPoolError | None = None
        self.closed = False
        self._terminated = False
        self._failed_starts = 0
        self.bells = Bells()
        self._waiting = Waiting(self._workers, tasks_per_worker)
        self._feeds = 0
        with making() as register:
            wake_up = Requests.descriptor()
            register(wake_up)
            self._selector = selectors.DefaultSelector()
            register(self._selector)
        self._requests = Requests(wake_up)
        self._selector.register(wake_up, selectors.EVENT_READ, self._requests.awake)
        try:
            for slot in range(recipe.processes):
                self._start_worker(slot)
        except BaseException:
            self._abandon()
            raise

    # -- called from any thread --------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Start the thread."""
        self._thread.start()

    def join(self) -> None:
        """Wait until the last worker has ended."""
        self._thread.join()

    def is_here(self) -> bool:
        """Return whether this is the pool's thread: in a callback."""
        return threading.current_thread() is self._thread

    def halt(self, grace_period: float, ranks: Iterable[int] | None = None, *, reason: str = "") -> str:
        """End the pool, whatever `ranks` says; return in a line what became of it."""
        count = len(self._workers)
        self.terminate()
        ended = self.finished.wait(grace_period + TERM_SECONDS + KILL_SECONDS)
        return f"the pool and its {count} workers {'have ended' if ended else 'are being ended'}"

    def submit(self, task: Task) -> None:
        """Have a task done; its job is told."""
        self._request(self._take_in, task)

    def tell(self, method: Callable[..., Any], *arguments: Any) -> None:
        """Have a method of a job called, by the pool's thread."""
        self._request(told, method, *arguments)

    def stop(self, job: Job, error: BaseException) -> None:
        """Fail all tasks of a job: those that wait are dropped, the workers of those that run are replaced."""
        self._request(self._stop, job, error)

    def drop(self, job: Job) -> None:
        """Forget the tasks of a job that wait; those that run go on."""
        self._request(self._waiting.drop, job)

    def recall(self, then: Callable[[], Any]) -> None:
        """Take back all tasks that no worker has begun, and call this before any of them is given again."""
        self._request(self._recall, then)

    def renew(self) -> None:
        """Replace every worker, as soon as it has done what it has."""
        self._request(self._renew)

    def feed(self, change: int) -> None:
        """Say that a call that still submits tasks has begun (1) or ended (-1): until then `close` waits for it."""
        self._request(self._count_feed, change)

    def close(self) -> None:
        """Take no further tasks; the workers end when all are done."""
        self.closed = True
        self._request(lambda: None)

    def terminate(self) -> None:
        """End all workers now and fail all tasks. Returns at once."""
        self.closed = True
        self._request(self._terminate)

    def _request(self, request: Callable[..., Any], *arguments: Any) -> None:
        self.assert_own()
        self._requests.ask(request, *arguments)
        if self.finished.is_set():
            self._do_requests()

    # -- the thread ---------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            while not self._is_over():
                self._requests.asleep = True  # whoever asks for something from now on wakes the thread
                events = self._selector.select(0 if self._requests else self._pause())
                self._requests.asleep = False
                for key, _ in events:
                    key.data()
                self._do_requests()
                now = time.monotonic()
                for worker in self._workers:
                    worker.look(now)
                self._waiting.give_out(now)
                self._let_go()
        except BaseException as error:
            _log.exception("a pool has failed")
            self._break(start_error(error))
            self._abandon()
        finally:
            self.closed = True
            self.finished.set()
            self._requests.asleep = False  # nobody writes to the descriptor from here on
            self._do_requests()
            self._selector.close()
            self._requests.close()

    def _do_requests(self) -> None:
        self._requests.do_all()
        self.bells.ring()

    def _is_over(self) -> bool:
        return self.closed and not self._workers and not self._has_work()

    def _has_work(self) -> bool:
        return bool(self._waiting or self._requests or (self._feeds and not self._terminated and not self.broken))

    def _pause(self) -> float | None:
        if any(worker.has_too_many() for worker in self._workers):
            return PATIENCE
        busy = self._waiting or any(worker.leaving for worker in self._workers)
        return LOOK_SECONDS if busy else None

    def _count_feed(self, change: int) -> None:
        self._feeds += change

    def _take_in(self, task: Task) -> None:
        if self.broken is not None or self._terminated or self.finished.is_set():
            told(task.job.failed, task.index, self.broken or _terminated())
            return
        self._waiting.add(task)

    # workers

    def _start_worker(self, slot: int) -> None:
        serial, self.started = self.started, self.started + 1
        worker = Worker(self._recipe, slot, serial, lambda ended: self._requests_end(ended))
        self._workers.append(worker)
        self._selector.register(worker.channel, selectors.EVENT_READ, lambda: self._hear(worker))

    def _requests_end(self, worker: Worker) -> None:
        if os.getpid() == self.owner:
            self._request(self._ended, worker)

    def _hear(self, worker: Worker) -> None:
        """Something is there: of a worker whose tasks are quick several outcomes perhaps."""
        for _ in range(worker.ahead - 1):
            if not self._listen(worker):
                break
        self.bells.ring()

    def _listen(self, worker: Worker) -> bool:
        """Take one message of a worker; False when there is none."""
        try:
            message = worker.channel.receive(wait=False)
        except OSError:
            return False
        if message is None:
            return False
        if message.is_broken or message.kind not in _KINDS:  # which outcome it was, if any, cannot be known
            _log.error(
                "worker %d (pid %s) is stopped: something else than outcomes was written to a descriptor of the pool's",
                worker.slot,
                worker.record.pid,
            )
            worker.stop()
        elif message.kind == READY:
            worker.ready = True
            self._failed_starts = 0
        elif message.kind == BROKEN:
            self._break(initializer_error(message.read()))
        else:
            self._take_outcome(worker, message)
        return True

    def _take_outcome(self, worker: Worker, message: Message) -> None:
        if not worker.tasks:  # it was given up meanwhile
            return
        now = time.monotonic()
        task = worker.told(now)
        self._waiting.give(worker, now)  # before the user's code (unpickling, callbacks) is run here
        if not message.is_data:
            self.bells.ring()
        try:
            outcome = message.read()
        except BaseException as error:
            told(task.job.failed, task.index, unread_error(error, worker.slot, worker.record.pid))
            return
        if message.kind == RETURNED:
            told(task.job.done, task.index, outcome)
        elif message.kind == RAISED:
            told(task.job.failed, task.index, task_error(outcome, worker.slot, worker.record.pid, self._frontend))

    def _ended(self, worker: Worker) -> None:
        if worker not in self._workers:
            return
        while self._listen(worker):
            pass
        self._waiting.take_all_back(worker)
        self._workers.remove(worker)
        self._selector.unregister(worker.channel)
        begun = list(worker.tasks)
        worker.tasks.clear()
        worker.close()
        for task in begun:
            told(task.job.failed, task.index, exit_error(worker.record, worker.slot))
        if not worker.ready and not worker.record.stopping:
            self._failed_starts += 1
            if self._failed_starts >= FAILED_STARTS and self.broken is None:
                self._break(start_error(exit_error(worker.record, worker.slot, "before it was ready")))
        self._replace(worker.slot)

    def _replace(self, slot: int) -> None:
        if self.broken is not None or self._terminated or (self.closed and not self._has_work()):
            return
        try:
            self._start_worker(slot)
        except Exception as error:
            self._break(start_error(error))

    def _let_go(self) -> None:
        """After `close`, have workers end for whom there is nothing left to do."""
        if self.closed and not self._has_work():
            for worker in self._workers:
                if not worker.tasks and not worker.leaving:
                    worker.leave()

    def _renew(self) -> None:
        for worker in self._workers:
            self._waiting.take_all_back(worker)
            worker.leave()

    def _recall(self, then: Callable[[], Any]) -> None:
        for worker in self._workers:
            self._waiting.take_all_back(worker)
        told(then)

    # ends

    def _stop(self, job: Job, error: BaseException) -> None:
        for worker in self._workers:
            self._waiting.take_all_back(worker)
            while self._listen(worker):
                pass
            if worker.tasks and worker.tasks[0].job is job:
                worker.stop()
        for task in [task for task in self._waiting if task.job is job]:
            told(job.failed, task.index, error)
        self._waiting.drop(job)

    def _terminate(self) -> None:
        self._terminated = True
        self._end_all(_terminated())

    def _break(self, error: BrokenPoolError) -> None:
        if self.broken is None:
            self.broken = error
            self._end_all(error)

    def _end_all(self, error: BaseException) -> None:
        lost = [task for worker in self._workers for task in worker.tasks] + list(self._waiting)
        self._waiting.clear()
        for worker in self._workers:
            worker.tasks.clear()
            worker.stop()
        for task in lost:
            told(task.job.failed, task.index, error)

    def _abandon(self) -> None:
        for worker in self._workers:
            worker.context.stop(0, reason="the failure of its pool")
            worker.close()
        self._workers.clear()


def _terminated() -> RuntimeError:
    return RuntimeError("the pool was terminated before this task was done")
