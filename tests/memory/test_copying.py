"""Large private arrays are copied by two threads."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import nbmp
from nbmp.memory import copying
from nbmp.memory.recycler import recycler
from tests.strategies import ONLY_BY_DESCRIPTOR

pytestmark = ONLY_BY_DESCRIPTOR  # what travels by name is not written to twice

LENGTH = copying.FOR_TWO.start + 5
SHORT = copying.FOR_TWO.start - 1


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the threads that were started, on a machine with two cores."""
    monkeypatch.setattr(copying, "cpu_count", lambda: 2)
    names: list[str] = []
    start = threading.Thread.start

    def noted(thread: threading.Thread) -> None:
        names.append(thread.name)
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", noted)
    return names


def numbers(length: int, seed: int) -> Any:
    return np.random.default_rng(seed).integers(0, 255, length, dtype="u1")


@pytest.mark.parametrize(("length", "threads"), [(SHORT, 0), (LENGTH, 1)])
def test_every_byte_is_copied_with_or_without_a_second_thread(started: list[str], length: int, threads: int) -> None:
    source, target = numbers(length, 1), bytearray(length)
    copying.copy(memoryview(target), memoryview(source).toreadonly())
    assert bytes(target) == source.tobytes()
    assert started == ["nbmp-copy"] * threads


def test_without_a_second_thread_to_be_had_one_copies_all(monkeypatch: pytest.MonkeyPatch) -> None:
    def none_left(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(copying, "cpu_count", lambda: 2)
    monkeypatch.setattr(threading.Thread, "start", none_left)
    source, target = numbers(LENGTH, 2), bytearray(LENGTH)
    copying.copy(memoryview(target), memoryview(source))
    assert bytes(target) == source.tobytes()


def test_a_segment_that_an_interrupt_left_half_written_is_not_used_again(
    started: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = nbmp.Queue()
    for seed in range(2):  # the second one finds a segment that is warm
        queue.put(numbers(LENGTH, seed))
        assert (queue.get(timeout=10) == numbers(LENGTH, seed)).all()
    join, shelved = threading.Thread.join, len(recycler.segments())

    def interrupted(thread: threading.Thread, timeout: float | None = None) -> None:
        monkeypatch.setattr(threading.Thread, "join", join)
        join(thread, timeout)
        raise KeyboardInterrupt

    monkeypatch.setattr(threading.Thread, "join", interrupted)
    with pytest.raises(KeyboardInterrupt):
        queue.put(numbers(LENGTH, 3))
    assert len(recycler.segments()) == shelved - 1
    assert queue.empty()
    queue.put(numbers(LENGTH, 4))
    assert (queue.get(timeout=10) == numbers(LENGTH, 4)).all()
    assert started.count("nbmp-copy") >= 2
    queue.close()
