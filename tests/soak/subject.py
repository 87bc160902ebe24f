"""The process that does the operations. Started by the director; tells it, a line of JSON each, what it does.

{"kind": "begun", "number", "name", "limit"}                          before an operation
{"kind": "ended", "number", "name", "seconds", "failure", "left", "counts"}    after it and its checks
{"kind": "gauge", ...}                                                from time to time
"""

from __future__ import annotations

import json
import os
import random
import sys
import tempfile
import threading
import time
import traceback
from typing import Any

import nbmp
from tests import leaks
from tests.benchmarks.bench_leaks import settled
from tests.soak import dumping, kernels
from tests.soak.chance import Chance
from tests.soak.operations import OPERATIONS, Operation

GAUGE_SECONDS = 30.0
GRACE = 30.0
"""Seconds for the checks after an operation."""


def choose(seed: int, number: int, names: list[str]) -> str:
    """Return the name of the operation with this number; what it chooses itself does not hang on that."""
    chance = random.Random(f"{seed}/{number}/name")
    return chance.choices(names, [OPERATIONS[name].weight for name in names])[0]


class Subject:
    def __init__(self, seed: int, tell: int, names: list[str]) -> None:
        self.seed = seed
        self.names = names
        self._tell = tell
        self._begun = time.monotonic()
        self._gauged = 0.0

    def run(self, first: int, until: float, count: int) -> None:
        """Do operations until the monotonic time `until`, `count` at most."""
        if "kernel" in self.names:
            kernels.warm_up()
        for number in range(first, first + count):
            if time.monotonic() >= until:
                break
            name = choose(self.seed, number, self.names)
            self._do(number, name, OPERATIONS[name])
            if time.monotonic() > self._gauged + GAUGE_SECONDS:
                self._gauge(number)
        self._gauge(-1)

    def _do(self, number: int, name: str, operation: Operation) -> None:
        self._say("begun", number=number, name=name, limit=operation.limit + GRACE)
        chance = Chance(self.seed, number)
        before, files = leaks.Holdings.now(), set(os.listdir(tempfile.gettempdir()))
        begun, failure = time.monotonic(), ""
        try:
            operation.do(chance)
        except (Exception, KeyboardInterrupt, SystemExit):
            failure = traceback.format_exc()
        nbmp.set_sharing_strategy("file_descriptor")
        seconds = time.monotonic() - begun
        left = leaks.leftovers(before, leaks.KINDS)
        left += [f"files: {name}" for name in set(os.listdir(tempfile.gettempdir())) - files]
        self._say("ended", number=number, name=name, seconds=seconds, failure=failure, left=left, counts=chance.counts)

    def _gauge(self, number: int) -> None:
        self._gauged = time.monotonic()
        disk = os.statvfs("/dev/shm")
        self._say(
            "gauge",
            at=number,
            minutes=round((self._gauged - self._begun) / 60, 1),
            private_kB=settled() // 1024,
            blocks=sys.getallocatedblocks(),
            descriptors=len(os.listdir("/proc/self/fd")),
            threads=threading.active_count(),
            shm_kB=(disk.f_blocks - disk.f_bfree) * disk.f_frsize // 1024,
            shm_names=len(os.listdir("/dev/shm")),
        )

    def _say(self, kind: str, **what: Any) -> None:
        line = json.dumps({"kind": kind, **what}) + "\n"
        os.write(self._tell, line.encode())


def main() -> None:
    settings = json.loads(sys.argv[1])
    dumping.answer()
    until = time.monotonic() + settings["seconds"]
    subject = Subject(settings["seed"], settings["tell"], settings["names"] or list(OPERATIONS))
    subject.run(settings["first"], until, settings["count"])


if __name__ == "__main__":
    main()
