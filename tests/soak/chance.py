"""What an operation chooses at random."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import numpy as np

import nbmp

METHODS, METHOD_WEIGHTS = ("fork", "forkserver", "spawn"), (6, 4, 1)
DTYPES = ("f8", "i4", "u1", ">f4", "c16", "M8[s]")
SIZES = (0, 1, 7, 100, 9_000, 60_000, 300_000)
"""Elements: inline, in a small segment, in a large one."""


class Chance:
    """The random choices of one operation, and what it counts."""

    def __init__(self, seed: int, number: int) -> None:
        self.random = random.Random(f"{seed}/{number}")
        self.counts: Counter[str] = Counter()

    def method(self) -> str:
        return self.random.choices(METHODS, METHOD_WEIGHTS)[0]

    def ranks(self) -> int:
        return self.random.choice((1, 2, 2, 3))

    def moment(self, longest: float = 0.4) -> float:
        """Return a moment in seconds, more often a short one."""
        return longest * self.random.random() ** 2

    def strategy(self) -> str:
        """Choose a sharing strategy for what is made from now on."""
        name = self.random.choice(("file_descriptor", "file_descriptor", "file_system"))
        nbmp.set_sharing_strategy(name)
        return name

    def private(self, value: int) -> Any:
        """Return a private array full of `value`, of some type and size, sometimes a view."""
        array = np.full(self.random.choice(SIZES), value % 100).astype(self.random.choice(DTYPES))
        return array[:: self.random.choice((1, 1, 2, -1))]

    def shared(self, value: int) -> Any:
        """Return a shared array full of `value`, of some type and size."""
        return nbmp.share_memory(np.full(self.random.choice(SIZES), value % 100).astype(self.random.choice(DTYPES)))

    def anything(self, value: int) -> Any:
        """Return something full of `value` that can be sent: see `work.is_full`."""
        kind = self.random.randrange(5)
        if kind == 0:
            return [value % 100] * self.random.choice((0, 3, 2000))
        if kind == 1:
            return {"one": self.private(value), "other": [self.shared(value)]}
        return self.private(value) if kind < 4 else self.shared(value)
