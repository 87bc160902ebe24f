"""Random numbers that differ between ranks and can be repeated.

A forked rank inherits the state of the global generators, so that N ranks would draw the same numbers. Each rank gets its own
seed, derived from the states of `random` and `numpy.random` in the launching process, which are read, not drawn from: the
same state gives the same numbers in the ranks. When `numpy.random` was never seeded by the user, fresh entropy is used
instead. Generators that the user made (`numpy.random.default_rng`) are the user's: `rng.spawn(world_size)[rank]`.
"""

import hashlib
import os
import random
import sys

from nbmp.launch.messages import Seeds


def derive(world_size: int) -> list[Seeds]:
    """Return the seeds of every rank, read off this process' global generators."""
    python = repr(random.getstate()).encode()
    numpy = _numpy_state()
    return [Seeds(_seed(python, rank), None if numpy is None else _seed(numpy, rank)) for rank in range(world_size)]


def apply(seeds: Seeds) -> None:
    """Seed this rank's global generators."""
    random.seed(seeds.python)
    if seeds.numpy is not None:
        import numpy.random

        numpy.random.seed([(seeds.numpy >> shift) & 0xFFFFFFFF for shift in range(0, 128, 32)])


def _numpy_state() -> bytes | None:
    generator = sys.modules.get("numpy.random.mtrand")
    if generator is None:
        return None
    state = generator._rand
    if getattr(state._bit_generator, "_seed_seq", None) is not None:  # NumPy seeded it itself, from the system's entropy
        return os.urandom(32)
    name, keys, *rest = state.get_state()
    return b"".join((name.encode(), keys.tobytes(), repr(rest).encode()))


def _seed(state: bytes, rank: int) -> int:
    return int.from_bytes(hashlib.blake2b(state, digest_size=16, salt=str(rank).encode()).digest(), "little")
