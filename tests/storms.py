"""Storms: processes that put and get on one queue while one of them is killed every few milliseconds.

    launching process    puts tokens, starts the workers, kills one of them every `PAUSE` seconds and replaces it
    worker               gets a token, checks what it carries, writes down that it got it, puts it back one hop older

What a worker gets is appended to one file, a record for each: the kernel appends them whole, whoever dies. So
afterwards it is known of every hop of every token who got it, and how often.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import time
from dataclasses import dataclass, field
from queue import Empty
from typing import Any

import numpy as np

import nbmp
from tests.forking import fork
from tests.waiting import none_runs, until

PAUSE = 0.05
FEWEST = 10
"""Kills that make a storm."""
TOKENS = 48
LARGE = 40_000
"""Elements of the array of every third token: it travels in a segment."""
RECORD = np.dtype([("token", "i8"), ("hop", "i8"), ("pid", "i8"), ("good", "i8")])


@dataclass
class Report:
    """What a storm did."""

    kills: int = 0
    put: int = 0
    """Tokens that were put in, the replaced ones included."""
    passed: int = 0
    """How often a token was got."""
    seen_twice: int = 0
    wrong: int = 0
    lost: int = 0
    """Tokens that were not there afterwards. Whoever is killed holds one at most."""
    blocked: int = 0
    """Workers alive after the storm that got nothing any more."""
    longest_gap: float = 0.0
    """Seconds that the queue stood still."""


def burden(token: int, shared: list[Any]) -> Any:
    """Return what a token carries: nothing large, a large private array, or a shared one."""
    if token % 3 == 0:
        return np.full(LARGE, token)
    return shared[token % len(shared)] if token % 3 == 1 else np.full(3, token)


def is_good(token: int, carried: Any, shared: int) -> bool:
    return bool((carried == (token % shared if token % 3 == 1 else token)).all())


def pass_on(queue: Any, log: int, shared: int) -> None:
    """Pass tokens on until told to leave."""
    while (taken := queue.get()) is not None:
        token, hop, carried = taken
        good = is_good(token, carried, shared)
        os.write(log, np.array([(token, hop, os.getpid(), good)], RECORD).tobytes())
        queue.put((token, hop + 1, carried))
        if isinstance(queue, nbmp.JoinableQueue):
            queue.task_done()


class Storm:
    """One storm over one queue."""

    def __init__(self, queue: Any, workers: int) -> None:
        self.queue = queue
        self.workers = workers
        self.report = Report()
        self._log = os.memfd_create("storm")
        self._append = os.open(f"/proc/self/fd/{self._log}", os.O_WRONLY | os.O_APPEND)
        self._shared = [nbmp.full(LARGE, i) for i in range(TOKENS)]

    def run(self, seconds: float) -> Report:
        """Kill for so long; on a machine too busy for that, until `FEWEST` were killed."""
        for _ in range(TOKENS):
            self._put()
        running = [self._start() for _ in range(self.workers)]
        self._kill_one_after_another(running, seconds)
        pids = set(running)
        before = self._records()
        until(lambda: pids <= set(self._read()["pid"][before:].tolist()), 20)
        self.report.blocked = len(pids - set(self._read()["pid"][before:].tolist()))
        for _ in running:
            self.queue.put(None)
        assert until(lambda: none_runs(running), 20), "a worker that was told to leave is still there"
        assert [os.waitpid(pid, 0)[1] for pid in running] == [0] * self.workers
        self._judge(self._drain())
        os.close(self._log)
        os.close(self._append)
        return self.report

    def _kill_one_after_another(self, running: list[int], seconds: float) -> None:
        begun = time.monotonic()
        read, still_since = 0, begun
        while (now := time.monotonic()) < begun + seconds or self.report.kills < FEWEST:
            time.sleep(max(0.0, begun + (self.report.kills + 1) * PAUSE - now))
            self._kill(running.pop(random.randrange(len(running))))
            running.append(self._start())
            if self._records() > read:
                read, still_since = self._records(), time.monotonic()
            self.report.longest_gap = max(self.report.longest_gap, time.monotonic() - still_since)
            if self.report.kills % 4 == 0 or self.queue.empty():  # some of the tokens go with the killed
                self._put()

    def _put(self) -> None:
        self.queue.put((self.report.put, 0, burden(self.report.put, self._shared)))
        self.report.put += 1

    def _start(self) -> int:
        """Fork a worker: nothing is quicker, and the next one may be killed in a moment."""
        pid = fork()
        if pid == 0:
            code = 1
            try:
                os.nice(10)  # they are busy without a pause, and the killing is to keep its pace
                pass_on(self.queue, self._append, len(self._shared))
                self.queue.close()
                self.queue.join_thread()
                code = 0
            finally:
                os._exit(code)
        return pid

    def _kill(self, pid: int) -> None:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        self.report.kills += 1

    def _records(self) -> int:
        return os.fstat(self._log).st_size // RECORD.itemsize

    def _read(self) -> Any:
        size = self._records() * RECORD.itemsize
        return np.frombuffer(os.pread(self._log, size, 0), RECORD)

    def _drain(self) -> list[tuple[int, int]]:
        left: list[tuple[int, int]] = []
        while True:
            try:
                token, hop, carried = self.queue.get(timeout=1)
            except Empty:
                return left
            self.report.wrong += not is_good(token, carried, len(self._shared))
            left.append((token, hop))

    def _judge(self, left: list[tuple[int, int]]) -> None:
        records = self._read()
        hops = np.concatenate([records["token"] * (1 << 32) + records["hop"], [(t << 32) + h for t, h in left]])
        self.report.passed = len(records)
        self.report.seen_twice = len(hops) - len(np.unique(hops))
        self.report.wrong += int((records["good"] == 0).sum())
        self.report.lost = self.report.put - len(left)


@dataclass
class PoolReport:
    """What a storm over a pool did."""

    kills: int = 0
    tasks: int = 0
    good: int = 0
    named: int = 0
    """Tasks that failed because their worker was killed, and say so."""
    other: list[str] = field(default_factory=list)
    """Whatever else was raised."""
    works_afterwards: bool = False


def double(array: Any) -> Any:
    time.sleep(0.002)
    return array * 2


def pool_storm(seconds: float, workers: int = 4) -> PoolReport:
    """Give a pool tasks while one of its workers is killed every `PAUSE` seconds."""
    report = PoolReport()
    with nbmp.Pool(workers, start_method="fork") as pool:
        results: list[tuple[int, Any]] = []
        begun = time.monotonic()
        while (now := time.monotonic()) < begun + seconds or report.kills < FEWEST:
            for _ in range(10):
                results.append((report.tasks, pool.apply_async(double, (np.full(LARGE, report.tasks),))))
                report.tasks += 1
            time.sleep(max(0.0, begun + (report.kills + 1) * PAUSE - now))
            pids = [worker.record.pid for worker in pool._workers._workers if worker.ready]
            if pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(random.choice(pids) or 0, signal.SIGKILL)
                    report.kills += 1
            results = _settle(report, results, wait=len(results) > 200)
        _settle(report, results, wait=True)
        report.works_afterwards = pool.map(double, range(8)) == [0, 2, 4, 6, 8, 10, 12, 14]
    return report


def _settle(report: PoolReport, results: list[tuple[int, Any]], *, wait: bool) -> list[tuple[int, Any]]:
    """Count the results that are there; return the others. With `wait`, all."""
    left = []
    for number, result in results:
        if not wait and not result.ready():
            left.append((number, result))
            continue
        try:
            good = bool((result.get(timeout=60) == 2 * number).all())
        except nbmp.WorkerExitedError:
            report.named += 1
        except Exception as error:
            report.other.append(f"{type(error).__name__}: {error}"[:200])
        else:
            report.good += good
    return left
