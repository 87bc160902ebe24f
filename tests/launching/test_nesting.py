"""Ranks that start processes themselves, and objects of the standard library that travel."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
from typing import Any

import pytest

import nbmp
from tests.launching import functions

METHODS = ("fork", "forkserver", "spawn")


def launch_inside(rank: int) -> list[list[Any]]:
    return [nbmp.launch(functions.give, ((rank, method),), 2, start_method=method) for method in METHODS]


def test_rank_launches_ranks_of_its_own_by_every_method(method: str) -> None:
    results = nbmp.launch(launch_inside, (), 2, start_method=method)
    assert results == [[[(rank, inner), (rank, inner)] for inner in METHODS] for rank in range(2)]


def fail_inside(rank: int) -> None:
    nbmp.launch(functions.give, (), 2, start_method="fork")


def test_failure_of_an_inner_rank_is_told_through_the_outer_one(method: str) -> None:
    with pytest.raises(nbmp.ProcessRaisedException, match=r"give\(\) missing") as raised:
        nbmp.launch(fail_inside, start_method=method)
    inner = raised.value.__cause__
    assert isinstance(inner, nbmp.ProcessRaisedException)
    assert len(inner.failures) >= 1


def print_inside(rank: int) -> None:
    nbmp.launch(functions.say, ("inner",), 2, start_method="fork")


def test_output_of_inner_ranks_comes_out_with_both_tags(method: str, capfd: pytest.CaptureFixture[str]) -> None:
    nbmp.launch(print_inside, start_method=method)
    assert sorted(capfd.readouterr().out.splitlines()) == ["[0] [0] inner", "[0] [1] inner"]


def double(queue: Any, number: int) -> None:
    queue.put(2 * number)


def use_standard_processes(rank: int, inner: str) -> list[int]:
    context = multiprocessing.get_context(inner)
    queue = context.SimpleQueue()
    processes = [context.Process(target=double, args=(queue, number)) for number in range(2)]  # type: ignore[attr-defined]
    for process in processes:
        process.start()
    got = sorted(queue.get() for _ in processes)
    for process in processes:
        process.join()
        assert process.exitcode == 0
    queue.close()
    return got


@pytest.mark.parametrize("inner", METHODS)
def test_rank_uses_processes_of_the_standard_library(method: str, inner: str) -> None:
    assert nbmp.launch(use_standard_processes, (inner,), start_method=method) == [[0, 2]]


def use_standard_pool(rank: int) -> list[int]:
    with multiprocessing.get_context("fork").Pool(2) as pool:
        return pool.map(abs, [-1, 2, -3])


def test_rank_uses_a_pool_of_the_standard_library(method: str) -> None:
    assert nbmp.launch(use_standard_pool, start_method=method) == [[1, 2, 3]]


def test_daemon_may_not_have_children(method: str) -> None:
    with pytest.raises(nbmp.ProcessRaisedException, match="daemonic processes are not allowed to have children"):
        nbmp.launch(use_standard_pool, daemon=True, start_method=method)


def run_a_program(rank: int) -> str:
    program = [sys.executable, "-c", "import os; print(os.environ['RANK'])"]
    return subprocess.run(program, capture_output=True, text=True, check=True).stdout


def test_rank_runs_programs(method: str) -> None:
    assert nbmp.launch(run_a_program, (), 2, start_method=method) == ["0\n", "1\n"]


def exchange(rank: int, queue: Any, lock: Any, event: Any, ends: Any) -> str:
    with lock:
        pass
    if rank == 0:
        queue.put(("from", rank))
        ends[1].send("through the pipe")
        event.set()
        return "sent"
    assert event.wait(20)
    return f"{queue.get(timeout=20)} {ends[0].recv()}"


def test_objects_of_the_standard_library_travel_in_args(method: str) -> None:
    context = multiprocessing.get_context(method)
    queue, lock, event = context.Queue(), context.Lock(), context.Event()
    ends = context.Pipe(duplex=False)
    results = nbmp.launch(exchange, (queue, lock, event, ends), 2, start_method=method)
    assert results == ["sent", "('from', 0) through the pipe"]
    for end in ends:
        end.close()
    queue.close()
    queue.join_thread()


def wait_at_barrier(rank: int, barrier: Any) -> int:
    return int(barrier.wait(20))


@pytest.mark.may_keep("descriptors")  # the standard library keeps the memory of its barriers
def test_barrier_of_the_standard_library_brings_ranks_together(method: str) -> None:
    barrier = multiprocessing.get_context(method).Barrier(3)
    assert sorted(nbmp.launch(wait_at_barrier, (barrier,), 3, start_method=method)) == [0, 1, 2]


def tell_process(rank: int) -> tuple[str, int | None, str | None, bytes]:
    process = multiprocessing.current_process()
    parent = multiprocessing.parent_process()
    assert process.pid == os.getpid()
    return process.name, parent.pid if parent else None, parent.name if parent else None, bytes(process.authkey)


def test_rank_knows_itself_and_its_parent_as_multiprocessing_does(method: str) -> None:
    key = bytes(multiprocessing.current_process().authkey)
    results = nbmp.launch(tell_process, (), 2, start_method=method)
    assert results == [(f"rank-{rank}", os.getpid(), "MainProcess", key) for rank in range(2)]
