"""Random numbers: different in each rank, the same again after the same seed, the launching process undisturbed."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nbmp
from tests import scripts


@pytest.fixture(autouse=True)
def own_state() -> Iterator[None]:
    """Put the global generators back after the test."""
    python, numpy = random.getstate(), np.random.get_state()
    yield
    random.setstate(python)
    np.random.set_state(numpy)


def draw(rank: int) -> tuple[float, float]:
    return random.random(), float(np.random.random())


def draws(method: str, nprocs: int = 3) -> list[tuple[float, float]]:
    return nbmp.launch(draw, (), nprocs, start_method=method)


def seed(value: int) -> None:
    random.seed(value)
    np.random.seed(value)


def test_ranks_draw_different_numbers(method: str) -> None:
    seed(1)
    np.random.random()  # used, as the symptom needs
    python, numpy = zip(*draws(method), strict=True)
    assert len(set(python)) == len(set(numpy)) == 3


def test_same_seed_gives_the_same_numbers_in_every_rank(method: str) -> None:
    seed(7)
    first = draws(method)
    seed(7)
    assert draws(method) == first
    seed(8)
    assert not set(draws(method)) & set(first)


def test_all_start_methods_draw_the_same_numbers_after_a_seed() -> None:
    drawn = []
    for method in ("fork", "forkserver", "spawn"):
        seed(3)
        drawn.append(draws(method, 2))
    assert drawn[0] == drawn[1] == drawn[2]


def test_launching_process_goes_on_as_if_nothing_had_been_drawn(method: str) -> None:
    seed(5)
    expected = draw(0)
    seed(5)
    draws(method)
    assert draw(0) == expected


def test_drawing_in_between_gives_other_numbers(method: str) -> None:
    seed(5)
    first = draws(method)
    draw(0)
    assert not set(draws(method)) & set(first)


def test_number_of_ranks_does_not_change_what_a_rank_draws(method: str) -> None:
    seed(5)
    two = draws(method, 2)
    seed(5)
    assert draws(method, 3)[:2] == two


def test_unseeded_launches_differ(method: str, tmp_path: Path) -> None:
    source = """
        import random, sys
        import numpy as np
        import nbmp

        def draw(rank):
            return float(np.random.random())

        np.random.random()  # used, not seeded
        print(len({x for _ in range(2) for x in nbmp.launch(draw, (), 2, start_method=sys.argv[1])}))
    """
    assert scripts.output(tmp_path, source, method) == "4\n"


def draw_from(rank: int, generator: Any) -> float:
    return float(generator.random())


def test_generator_of_the_user_travels_as_it_is(method: str) -> None:
    generator = np.random.default_rng(4)
    same = nbmp.launch(draw_from, (generator,), 2, start_method=method)
    assert same == [float(np.random.default_rng(4).random())] * 2
