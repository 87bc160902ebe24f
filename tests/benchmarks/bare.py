"""A function for the benchmarks that every process can import, in a module that imports nothing."""


def nothing(rank: int) -> None:
    """Do nothing."""
