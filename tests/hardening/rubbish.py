"""Rubbish in place of a message: what the fuzzing tests make it of, and what may not come of it.

Packets are our own with a part of the framing replaced, or no packets at all; with descriptors that lead to anything.
What is inside a pickle is the sender's to say and is not looked at here: whoever has the channel may send any.
"""

from __future__ import annotations

import gc
import os
import pickle
import socket
import struct
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import psutil
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

import nbmp
from nbmp.errors import BrokenMessageError, MissingSegmentError
from nbmp.pickling.arriving import loads

EXAMPLES, VARIANTS = 300, 12
"""Cases of each of the three tests that make them up: 10,800 in all."""


def quickly(examples: int = EXAMPLES) -> settings:
    return settings(
        max_examples=examples, deadline=None, database=None, derandomize=True, suppress_health_check=list(HealthCheck)
    )


TOLD = (BrokenMessageError, MissingSegmentError)
MOST_BYTES = 256 << 20
"""What handling rubbish may take of address space: far less than the sizes that it speaks of."""


def variants(content: bytes, seed: int) -> Iterator[bytes]:
    """Return it as it is, and with something changed: hypothesis takes a hundred times as long for each."""
    random = Random(seed)
    yield content
    for _ in range(VARIANTS - 1):
        changed = bytearray(content or b"\1")
        how = random.randrange(4)
        if how == 0:
            changed = changed[: random.randrange(len(changed))]
        elif how == 1:
            changed += bytes(random.randrange(1, 9))
        else:
            place = random.randrange(min(len(changed), 24))  # where the heads are
            changed[place : place + how - 1] = bytes([random.choice((0, 1, 127, 128, 254, 255))]) * (how - 1)
        yield bytes(changed)


SEEDS = st.integers(0, 1 << 32)
NUMBERS = st.one_of(
    st.integers(0, 5), st.sampled_from([62, 254, 255, 1 << 16, (1 << 31) - 1, 1 << 31, (1 << 32) - 1, (1 << 64) - 1])
)
HEADER = struct.Struct("<BxxxIIQ")
PICKLE = pickle.dumps(("one", 2), 5)


def wrap(bits: int) -> Callable[[int], int]:
    """Return what makes a number fit into so many bits."""
    return lambda number: number & ((1 << bits) - 1)


BYTE, SHORT, WORD, LONG = (NUMBERS.map(wrap(bits)) for bits in (8, 16, 32, 64))
TAILS = st.one_of(st.just(PICKLE), st.binary(max_size=40).filter(lambda tail: tail[:1] != b"\x80"))
"""A pickle, or what is none: the bytes behind a pickle's first one are not ours to check."""

FRAMED = st.builds(
    lambda kind, count, length, outside, sizes, tail: (
        HEADER.pack(kind, count, length, outside) + struct.pack(f"<{len(sizes)}q", *sizes) + tail
    ),
    st.integers(1, 5),
    WORD,
    st.one_of(st.just(len(PICKLE)), WORD),
    st.one_of(st.just((1 << 64) - 1), LONG),
    st.lists(st.integers(-(1 << 63), (1 << 63) - 1) | st.integers(-70, 70), max_size=4),
    TAILS,
)
LONE = st.builds(
    lambda kind, length, check, tail: struct.pack("<BHI", kind, length, check) + tail,
    st.integers(6, 8),
    SHORT,
    WORD,
    st.binary(max_size=60),
)
WRAPPED = st.builds(lambda length, tail: struct.pack("<BQ", 5, length) + tail, LONG, st.binary(max_size=2))
PLAIN = TAILS.map(lambda tail: b"\0" + tail)
CONTENTS = st.one_of(st.binary(max_size=60), FRAMED, LONE, WRAPPED, PLAIN)


def opened_files() -> list[int]:
    """Return descriptors of all kinds, none of which a message would have."""
    empty, some = os.memfd_create("empty"), os.memfd_create("some")
    os.write(some, b"x" * 100)
    sparse = os.memfd_create("sparse")
    os.ftruncate(sparse, 1 << 40)
    reading, writing = os.pipe()
    one, other = socket.socketpair()
    return [
        empty,
        some,
        sparse,
        reading,
        writing,
        one.detach(),
        other.detach(),
        os.open("/dev/null", os.O_RDWR),
        os.open("/", os.O_PATH),
        os.open("/proc/self/status", os.O_RDONLY),
        os.eventfd(0),
    ]


class Holding:
    """What this process holds: nothing may come of rubbish."""

    def __init__(self) -> None:
        nbmp.trim()
        self._fds = len(os.listdir("/proc/self/fd"))
        self._bytes = psutil.Process().memory_info().vms

    def check(self) -> None:
        nbmp.trim()
        gc.collect()
        assert len(os.listdir("/proc/self/fd")) == self._fds
        assert psutil.Process().memory_info().vms - self._bytes < MOST_BYTES


def read(content: bytes, fds: list[int]) -> Any:
    """Read a parcel that came with duplicates of these descriptors."""
    from nbmp.memory.descriptors import own_all

    owned: list[Any] = []
    own_all(map(os.dup, fds), owned)
    return loads(content, owned)
