"""Rubbish in place of a parcel, the inside of a message: an error that says so, and nothing is kept."""

from __future__ import annotations

import struct
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nbmp
from nbmp.errors import BrokenMessageError, SharedMemoryError
from nbmp.pickling import lone
from tests.hardening.rubbish import CONTENTS, EXAMPLES, PICKLE, SEEDS, VARIANTS, Holding, quickly, read, variants


def test_no_parcel_is_told(files: list[int], holding: Holding) -> None:
    """Mostly: some of what is made up is a parcel, by chance."""
    told = 0

    @quickly()
    @given(CONTENTS, st.lists(st.integers(0, len(files) - 1), max_size=2), SEEDS)
    def attempt(content: bytes, along: list[int], seed: int) -> None:
        nonlocal told
        for variant in variants(content, seed):
            try:
                read(variant, [files[index] for index in along])
            except (BrokenMessageError, SharedMemoryError):
                told += 1
            except Exception:
                assert PICKLE[:1] in variant  # what is wrong is inside a pickle

    attempt()
    assert told > EXAMPLES * VARIANTS // 2


ARRAYS = [
    np.arange(5),
    np.zeros((3, 0), "i2"),
    np.asfortranarray(np.ones((3, 4), ">f4")),
    np.array(["x", "yy"]),
    np.zeros(50_000),
    np.array(5.0),
]


def test_damaged_array_is_told(holding: Holding) -> None:
    """A byte of the description is another one, or bytes are missing, or there are more of them."""
    sent = [lone.parcel_of(one) for one in (*ARRAYS, nbmp.ones(7))]
    parcels = [one.settled() for one in sent if one is not None]
    assert len(parcels) == 7

    @quickly()
    @given(st.integers(0, 6), SEEDS)
    def attempt(number: int, seed: int) -> None:
        whole, random = parcels[number], Random(seed)
        for _ in range(VARIANTS):
            content = bytearray(whole.content)
            content[random.randrange(7 + struct.unpack_from("<H", content, 1)[0])] ^= random.randrange(1, 256)
            more = random.randrange(-3, 4)
            changed = bytes(content[:more] if more < 0 else content + bytes(more))
            with pytest.raises(BrokenMessageError):
                read(changed, [owner.fd for owner in whole.owners])

    attempt()
    parcels.clear()
    sent.clear()
