"""Which segments this process has shared arrays in, for whoever wants to know since when. Cheap: nothing is asked of
the system."""

from nbmp.memory import arrays
from nbmp.memory.mappings import Key


def shared_segments() -> list[Key]:
    """Return the segments with shared arrays that live in this process: made here, arrived, or inherited by a fork."""
    return [root.segment.key for root in arrays._roots.alive() if root.segment is not None]


def arena_mark() -> tuple[Key, int] | None:
    """Return the segment that small arrays are put into now and how much of it is given out; None without one.

    Places in it are given out in order, so an array that is made later lies behind this mark, or in another segment.
    """
    root, used = arrays._arena._current(), arrays._arena._used
    return None if root is None or root.segment is None else (root.segment.key, used)
