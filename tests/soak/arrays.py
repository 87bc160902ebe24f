"""Shared arrays of both strategies."""

from __future__ import annotations

import gc

import numpy as np

import nbmp
from tests.soak import work
from tests.soak.chance import Chance


def written_by_ranks(chance: Chance) -> None:
    """Ranks write, all see it."""
    chance.strategy()
    ranks = chance.ranks()
    array = nbmp.zeros((ranks, chance.random.choice((1, 10, 40_000))), chance.random.choice(("f8", "i4", ">i2")))
    nbmp.start_processes(work.fill, (array,), ranks, start_method=chance.method())
    assert np.array_equal(array, np.broadcast_to(np.arange(1, ranks + 1)[:, None], array.shape)), array
    chance.counts.update(launches=1, ranks=ranks, arrays=1)


def many(chance: Chance) -> None:
    """Many small ones and some large ones, kept by a rank and here, dropped in any order."""
    chance.strategy()
    count = chance.random.choice((10, 300))
    things = [chance.shared(i) for i in range(count)]
    assert nbmp.launch(work.check, (things,), 2, start_method=chance.method()) == [0, 1]
    while things:
        things.pop(chance.random.randrange(len(things)))
    if chance.random.random() < 0.3:
        nbmp.trim()
    chance.counts.update(launches=1, ranks=2, arrays=count)


def views(chance: Chance) -> None:
    """A view keeps its memory, wherever it goes; what comes back is the same memory."""
    chance.strategy()
    whole = nbmp.zeros((60, 500), chance.random.choice(("f8", "u1", "c16")))
    start, step = chance.random.randrange(30), chance.random.choice((1, 3, -1))
    view = whole[start :: step or 1, 10:20].T
    line = nbmp.Queue()
    line.put(view)
    if chance.random.random() < 0.5:
        del whole
    gc.collect()
    back = line.get(timeout=50)
    back[0, 0] = 7
    assert view[0, 0] == 7
    assert back.strides == view.strides
    chance.counts.update(arrays=1, messages=1)
