"""The launch that was started last."""

from __future__ import annotations

import gc
import threading
import weakref
from pathlib import Path

import nbmp
from tests.launching import functions
from tests.waiting import until


def test_the_last_launch_is_the_one_that_runs_and_goes_when_nobody_holds_it(tmp_path: Path) -> None:
    first = functions.begin(functions.stay, (str(tmp_path),), 1, "fork")
    second = functions.begin(functions.give, (7,), 1, "fork")
    assert nbmp.last_launch() is second
    assert second.join()
    assert nbmp.last_launch() is second
    del second
    assert until(lambda: gc.collect() >= 0 and nbmp.last_launch() is None)  # its thread has it for a moment longer
    first.stop()


def test_launch_that_is_over_goes_though_somebody_keeps_its_thread(tmp_path: Path) -> None:
    """ipykernel keeps, for some seconds, each thread that has written something."""
    context = functions.begin(functions.stay_then_wait, (str(tmp_path),), 1, "fork")
    kept = [thread for thread in threading.enumerate() if thread.name == "nbmp-supervisor"]
    (tmp_path / "go").touch()
    assert context.join()
    for thread in kept:
        thread.join()
    assert len(kept) == 1
    over = weakref.ref(context)
    del context
    gc.collect()
    assert over() is None


def last_of_rank(rank: int) -> tuple[bool, int]:
    before = nbmp.last_launch() is None
    context = nbmp.start_processes(functions.give, (1,), 3, join=False, start_method="fork")
    last = nbmp.last_launch()
    assert context is not None
    assert context is last
    context.join()
    return before, context.world_size


def test_a_rank_sees_the_launches_that_it_has_started_itself() -> None:
    assert nbmp.launch(last_of_rank, nprocs=2, start_method="fork") == [(True, 3), (True, 3)]


def test_results_that_were_returned_are_not_kept_in_the_context() -> None:
    context = functions.begin(functions.give, (7,), 2, "fork")
    assert context.join()
    assert context.take_results() == [7, 7]
    assert context.results == [None, None]
