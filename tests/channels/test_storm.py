"""Storms of SIGKILL over queues, some seconds each; `tests/benchmarks/bench_storm.py` is the long form."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import nbmp
from tests import storms

SECONDS = 4.0
QUEUES: dict[str, Callable[[], Any]] = {
    "Queue": nbmp.Queue,
    "bounded Queue": lambda: nbmp.Queue(2 * storms.TOKENS),
    "JoinableQueue": nbmp.JoinableQueue,
}


@pytest.mark.parametrize("make", QUEUES.values(), ids=QUEUES)
def test_nobody_blocks_nothing_comes_twice_and_only_what_the_killed_held_is_lost(make: Callable[[], Any]) -> None:
    queue = make()
    report = storms.Storm(queue, 8).run(SECONDS)
    assert report.kills >= storms.FEWEST
    assert report.passed > report.kills
    assert (report.blocked, report.seen_twice, report.wrong) == (0, 0, 0), report
    assert report.lost <= report.kills, report
    if queue._slots is not None:  # every slot of the killed is free again
        for _ in range(2 * storms.TOKENS):
            queue.put(1, timeout=5)


def test_every_task_of_a_pool_gives_its_result_or_a_named_error() -> None:
    report = storms.pool_storm(SECONDS)
    assert report.kills >= storms.FEWEST
    assert report.good > 0
    assert report.other == []
    assert report.good + report.named == report.tasks
    assert report.works_afterwards
