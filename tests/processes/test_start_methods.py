"""The start method that is chosen once for all, nbmp's own: multiprocessing's is never touched."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator
from pathlib import Path

import pytest

import nbmp
from nbmp.launching.default_method import choose
from tests.processes import functions
from tests.scripts import output
from tests.waiting import PATIENCE


@pytest.fixture(autouse=True)
def none_chosen() -> Iterator[None]:
    before = multiprocessing.get_start_method(allow_none=True)
    yield
    nbmp.set_start_method(None, force=True)
    assert multiprocessing.get_start_method(allow_none=True) == before


def test_nothing_is_chosen_until_somebody_chooses() -> None:
    assert nbmp.get_start_method(allow_none=True) is None
    assert nbmp.get_start_method() == nbmp.default_start_method().method
    assert nbmp.get_start_method(allow_none=True) is None  # asking chooses nothing


def test_choice_is_what_everything_is_started_by(method: str) -> None:
    nbmp.set_start_method(method)
    assert nbmp.get_start_method() == nbmp.get_context().get_start_method() == method
    assert nbmp.default_start_method() == (method, "chosen by set_start_method")
    context = nbmp.start_processes(print, join=False, nprocs=0)
    assert context is not None
    assert context.start_method == method
    assert choose("spawn").method == "spawn"  # what is asked for goes before it


def test_choosing_twice_is_an_error_unless_it_is_forced() -> None:
    nbmp.set_start_method("spawn")
    with pytest.raises(RuntimeError, match=r"^context has already been set: the start method is '\w+'; force=True"):
        nbmp.set_start_method("spawn")
    nbmp.set_start_method("forkserver", force=True)
    assert nbmp.get_start_method() == "forkserver"
    nbmp.set_start_method(None, force=True)
    assert nbmp.get_start_method(allow_none=True) is None


@pytest.mark.parametrize("wrong", ["thread", None, 3])
def test_unknown_method_is_refused_and_nothing_is_chosen(wrong: str) -> None:
    with pytest.raises(ValueError, match="it is one of fork, forkserver, spawn"):
        nbmp.set_start_method(wrong)
    assert nbmp.get_start_method(allow_none=True) is None


def test_processes_inherit_the_choice(method: str) -> None:
    nbmp.set_start_method("spawn")
    answers = nbmp.SimpleQueue()
    process = nbmp.get_context(method).Process(target=functions.describe, args=(answers,))
    process.start()
    assert answers.get()["method"] == "spawn"
    process.join(PATIENCE)


def test_preloaded_modules_are_there_in_served_ranks(tmp_path: Path) -> None:
    source = """
        import sys, nbmp
        def loaded(rank): return "colorsys" in sys.modules
        nbmp.set_forkserver_preload(["colorsys", "no_such_module"])
        print(nbmp.launch(loaded, start_method="forkserver"))
    """
    assert output(tmp_path, source) == "[True]\n"
