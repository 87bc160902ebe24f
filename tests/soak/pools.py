"""Pools and executors that work."""

from __future__ import annotations

import numpy as np

import nbmp
from tests.soak import work
from tests.soak.chance import Chance


def pool(chance: Chance) -> None:
    """All ways to call, with arrays and without; closed, terminated or just let go."""
    chance.strategy()
    workers, count = chance.ranks(), chance.random.choice((1, 10, 60))
    one = nbmp.Pool(workers, maxtasksperchild=chance.random.choice((None, None, 3)), start_method=chance.method())
    offset = chance.random.randrange(100)
    local = lambda x: x + offset  # noqa: E731 - a function that travels by value
    assert one.map(local, range(count)) == [x + offset for x in range(count)]
    assert sorted(one.imap_unordered(work.double, range(count))) == [2 * x for x in range(count)]
    array = np.full(chance.random.choice((0, 10, 50_000)), 3.0)
    results = [one.apply_async(work.double, (array,)) for _ in range(5)]
    assert all((result.get(timeout=50) == 6).all() for result in results)
    shared = nbmp.ones(chance.random.choice((3, 50_000)))
    assert all((part == 2).all() for part in one.map(work.double, [shared] * 3))
    end = chance.random.randrange(3)
    if end == 0:
        one.close()
        one.join()
    elif end == 1:
        one.terminate()
    chance.counts.update(pools=1, ranks=workers, tasks=2 * count + 8)


def executor(chance: Chance) -> None:
    count = chance.random.choice((1, 30))
    with nbmp.ProcessPoolExecutor(chance.ranks(), start_method=chance.method()) as one:
        futures = [one.submit(work.double, np.full(1000 * i, i)) for i in range(count)]
        assert all((future.result(timeout=50) == 2 * i).all() for i, future in enumerate(futures))
        assert list(one.map(work.sleepy_double, range(5))) == [0, 2, 4, 6, 8]
    chance.counts.update(pools=1, tasks=count + 5)
