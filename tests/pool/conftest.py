"""A pool for each test."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from nbmp.memory.janitor import trim
from nbmp.memory.recycler import recycler
from nbmp.pool import Pool
from tests.waiting import until


@pytest.fixture
def pool(method: str) -> Iterator[Pool]:
    """Return a pool of two workers, one for each start method."""
    with Pool(2, start_method=method) as pool:
        yield pool
        pool.terminate()
        pool.join()


@pytest.fixture(autouse=True)
def no_cached_memory() -> Iterator[None]:
    """Let go of segments and mappings that are kept for the next message."""
    yield
    until(is_trimmed, 2)


def is_trimmed() -> bool:
    gc.collect()
    trim()
    return not recycler.segments()
