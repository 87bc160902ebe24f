"""Random numbers that differ between ranks and can be repeated.

A forked rank inherits the state of the global generators, so that N ranks would draw the same numbers. Each rank gets
its own seed, derived from the states of `random` and `numpy.random` in the launching process, which are read, not
drawn from: the launching process goes on as if there had been no launch, and the same state gives the same numbers in
the ranks of every launch. (That a seed was set anew, to the same value, cannot be told from a state that nobody has
touched, so launches cannot be counted.) When `numpy.random` was never seeded by the user,
fresh entropy is used instead. Generators that the user made (`numpy.random.default_rng`) are the user's:
`rng.spawn(world_size)[rank]`.
"""

import os
import random
import sys
from collections.abc import Iterable

from nbmp.launching.messages import Seeds


def derive(world_size: int) -> list[Seeds]:
    """Return the seeds of every rank, read off this process' global generators."""
    return derive_for(range(world_size))


def derive_for(numbers: Iterable[int]) -> list[Seeds]:
    """Return the seeds of the ranks of these numbers."""
    python = repr(random.getstate()).encode()
    numpy = _numpy_state()
    entropy = os.urandom(32) if numpy is None else numpy
    return [Seeds(_seed(python, rank), _seed(entropy, rank), numpy is not None) for rank in numbers]


def apply(seeds: Seeds) -> None:
    """Seed this rank's global generators."""
    random.seed(seeds.python)
    if seeds.numpy_used or "numpy.random" in sys.modules:  # loaded, it has the state of the process we were forked from
        import numpy.random

        numpy.random.seed([(seeds.numpy >> shift) & 0xFFFFFFFF for shift in range(0, 128, 32)])


def _numpy_state() -> bytes | None:
    """Return the state of `numpy.random` if the user may rely on it: None while NumPy's own seeding is in force."""
    generator = sys.modules.get("numpy.random.mtrand")
    if generator is None or getattr(generator._rand._bit_generator, "_seed_seq", None) is not None:
        return None
    name, keys, *rest = generator._rand.get_state()
    return b"".join((name.encode(), keys.tobytes(), repr(rest).encode()))


def _seed(state: bytes, rank: int) -> int:
    import hashlib  # here: it loads OpenSSL, for which a rank has no use

    return int.from_bytes(hashlib.blake2b(state, digest_size=16, salt=str(rank).encode()).digest(), "little")
