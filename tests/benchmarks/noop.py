"""A function for the benchmarks that every process can import, in a module that uses arrays."""

import numpy as np

NOTHING = np.zeros(0)


def nothing(rank: int) -> None:
    """Do nothing."""
