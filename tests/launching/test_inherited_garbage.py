"""A forked rank that looks for garbage leaves alone what it has inherited: it is not copied, nor ended twice."""

from __future__ import annotations

import gc
import resource
import weakref
from collections.abc import Iterator
from pathlib import Path

import pytest

import nbmp

PAGES = 17_000
"""Of 4 kB, that the objects below take."""
FEW = 2_000
"""Pages that a rank writes to for other reasons."""


class InACircle:
    def __init__(self) -> None:
        self.itself = self


@pytest.fixture
def no_collector() -> Iterator[None]:
    gc.disable()
    yield
    gc.enable()


def pages_written(rank: int) -> int:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    gc.collect()
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


def test_inherited_objects_are_not_copied() -> None:
    inherited = [[number] for number in range(PAGES * 4096 // 72)]
    for pages in nbmp.launch(pages_written, nprocs=2, start_method="fork"):
        assert pages < FEW
    assert len(inherited) > PAGES


def collect(rank: int) -> int:
    return gc.collect()


@pytest.mark.usefixtures("no_collector")
def test_inherited_garbage_is_ended_by_the_launching_process_alone(tmp_path: Path) -> None:
    ended = tmp_path / "ended"
    weakref.finalize(InACircle(), ended.touch)
    nbmp.launch(collect, nprocs=2, start_method="fork")
    assert not ended.exists()
    gc.collect()
    assert ended.exists()


def make_garbage(rank: int) -> bool:
    kept = weakref.ref(InACircle())
    gc.collect()
    return kept() is None


def test_garbage_of_a_rank_is_collected(method: str) -> None:
    assert nbmp.launch(make_garbage, nprocs=2, start_method=method) == [True, True]
