"""What is kept for reuse is bounded in bytes, in number and in time, and what is given up frees its memory at once."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import nbmp
from nbmp.memory import mappings, recycler
from nbmp.memory.segment import Segment


@pytest.fixture(autouse=True)
def nothing_kept() -> Iterator[None]:
    nbmp.trim()
    yield
    nbmp.trim()


def messages(count: int, size: int) -> Any:
    """Return a queue with so many unread messages of `size` bytes each."""
    q = nbmp.Queue()
    for _ in range(count):
        q.put(np.zeros(size, "u1"))
    return q


def test_segments_kept_are_bounded_in_number() -> None:
    q = messages(recycler.KEPT_COUNT + 40, 100_000)
    assert len(recycler.recycler.segments()) == recycler.KEPT_COUNT
    del q


def test_segments_kept_are_bounded_in_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recycler, "KEPT_BYTES", 1_000_000)
    q = messages(30, 100_000)
    assert 5 <= len(recycler.recycler.segments()) <= 10
    del q


def test_mappings_kept_are_bounded_in_number_and_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    q = messages(recycler.KEPT_COUNT + 40, 100_000)
    kept = [q.get(timeout=5) for _ in range(recycler.KEPT_COUNT + 40)]
    assert len(mappings._kept) == mappings.KEPT_COUNT
    monkeypatch.setattr(mappings, "KEPT_BYTES", 1_000_000)
    q.put(np.zeros(100_000))
    kept.append(q.get(timeout=5))
    assert mappings.kept_bytes() <= 1_000_000


def test_under_a_low_limit_of_open_files_less_is_kept() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (400, hard))
    try:
        q = messages(100, 100_000)
        kept = [q.get(timeout=5) for _ in range(100)]
        assert len(recycler.recycler.segments()) == 50
        assert len(mappings._kept) == 50
        assert len(os.listdir("/proc/self/fd")) < 300
        del kept
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_what_is_given_up_is_freed_although_a_receiver_still_has_it_mapped() -> None:
    q = messages(1, 5_000_000)
    (segment,) = recycler.recycler.segments()
    receivers = mappings.mapping(segment.key, segment.size, segment.fd)
    q.get(timeout=5)
    watch = os.dup(segment.fd)
    del segment
    assert os.fstat(watch).st_blocks * 512 >= 5_000_000
    nbmp.trim()
    assert os.fstat(watch).st_blocks == 0
    assert receivers[:10] == bytes(10)
    os.close(watch)


def test_only_a_few_segments_are_asked_whether_they_are_free(monkeypatch: pytest.MonkeyPatch) -> None:
    q = messages(60, 100_000)
    asked = 0
    is_free = Segment.is_free

    def counted(segment: Segment) -> bool:
        nonlocal asked
        asked += 1
        return is_free(segment)

    monkeypatch.setattr(Segment, "is_free", counted)
    q.put(np.zeros(100_000, "u1"))
    assert asked == recycler.SCAN


def test_shared_array_costs_two_descriptors_at_most_and_none_is_inherited_by_programs() -> None:
    before = set(os.listdir("/proc/self/fd"))
    arrays = [nbmp.ones(100_000) for _ in range(10)]
    q = nbmp.Queue()
    q.put(arrays)
    received = q.get(timeout=5)
    q.put(np.ones(100_000))
    received.append(q.get(timeout=5))
    new = [int(name) for name in os.listdir("/proc/self/fd") if name not in before]
    assert len(new) <= 2 * len(arrays) + 12  # the queue's, the message's, the listing's
    assert not any(map(os.get_inheritable, [fd for fd in new if os.path.exists(f"/proc/self/fd/{fd}")]))
