"""The operations: each takes its chances, does something that must work or fail as it should, and leaves nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tests.soak import arrays, deaths, errors, interrupts, kernels, kills, launches, pools, queues
from tests.soak.chance import Chance


@dataclass(frozen=True)
class Operation:
    do: Callable[[Chance], None]
    weight: int
    limit: float = 60.0
    """Seconds after which it counts as hung."""


OPERATIONS = {
    "launch": Operation(launches.launch, 10),
    "launches, several": Operation(launches.several, 4),
    "launch, output": Operation(launches.output, 4),
    "queue": Operation(queues.queue, 10),
    "queue, chain": Operation(queues.chain, 4),
    "queue, own process": Operation(queues.to_itself, 6),
    "pool": Operation(pools.pool, 6),
    "executor": Operation(pools.executor, 3),
    "arrays": Operation(arrays.written_by_ranks, 8),
    "arrays, many": Operation(arrays.many, 4),
    "arrays, views": Operation(arrays.views, 4),
    "error of a rank": Operation(errors.of_a_rank, 6),
    "error before the start": Operation(errors.before_the_start, 5),
    "error in a pool": Operation(errors.in_a_pool, 5),
    "kill a rank": Operation(kills.a_rank, 5),
    "kill at a queue": Operation(kills.at_a_queue, 5),
    "kill a worker": Operation(kills.a_worker, 4),
    "kill the fork server": Operation(kills.the_fork_server, 2),
    "kill the manager": Operation(kills.the_manager, 2),
    "interrupt a launch": Operation(interrupts.a_launch, 6),
    "interrupt a pool": Operation(interrupts.a_pool, 4),
    "interrupt a queue": Operation(interrupts.a_queue, 4),
    "kill the launcher": Operation(deaths.of_a_launcher, 3),
    "kernel": Operation(kernels.kernel, 1, 180.0),
}
