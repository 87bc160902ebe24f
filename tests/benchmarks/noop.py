"""A function for the benchmarks that every process can import."""


def nothing(rank: int) -> None:
    """Do nothing."""
