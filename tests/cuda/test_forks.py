"""A process that was forked when CUDA was in use: arrays are refused there, and its parent's loans are left alone."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

import nbmp
from nbmp import platforms
from nbmp.cuda import received
from nbmp.cuda.loans import PURPOSE, loans
from nbmp.platforms import gpu as detection
from tests.cuda import functions, standin
from tests.cuda.asking import Rank
from tests.cuda.machine import array, event, values
from tests.waiting import until

pytestmark = pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")  # 3.12 and later


def in_child(work: Callable[[], None]) -> int:
    """Do it in a fork, and return its exit status."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            work()
            code = 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def raises(error: type[Exception], text: str, work: Callable[[], object]) -> None:
    with pytest.raises(error, match=text):
        work()


def lease_files() -> list[str]:
    """Return the lease files that this process has open."""
    open_ones = (path.readlink().name for path in list(Path("/proc/self/fd").iterdir()) if path.is_symlink())
    return [name for name in open_ones if f"-{PURPOSE}" in name]


@pytest.fixture
def initialised(machine: standin.StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have CUDA look initialised, as it is when an array is there."""
    monkeypatch.setattr(detection, "_is_initialised", lambda: True)


def test_arrays_and_events_are_refused_in_a_fork_with_the_name_of_who_initialised_cuda(initialised: None) -> None:
    sent, done, queue = array([1]), event(), nbmp.Queue()
    queue.put(sent)

    def work() -> None:
        assert platforms.lost_to_fork() == "CuPy"
        assert not lease_files()
        for thing in (sent, [sent], done):
            with pytest.raises(nbmp.CannotTravelError, match=r"CUDA was initialised \(by CuPy\)") as caught:
                queue.put(thing)
            assert isinstance(caught.value.__cause__, nbmp.CudaForkError)
        raises(nbmp.CudaForkError, "start_method='spawn'", lambda: queue.get(timeout=20))

    assert in_child(work) == 0
    assert platforms.lost_to_fork() is None


def test_fork_that_lives_on_keeps_no_block_of_others_and_gives_up_none_of_its_parent(initialised: None) -> None:
    queue, said = nbmp.Queue(), nbmp.Queue()
    context = nbmp.start_processes(functions.produce_once, (queue, said), 1, join=False, start_method="spawn")
    found, own = queue.get(timeout=60), array([5])
    back: nbmp.Queue = nbmp.Queue()
    back.put(own)
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(writing)
        os.read(reading, 1)  # lives until the parent says so
        os._exit(0)
    os.close(reading)
    assert values(found) == [1, 2, 3]
    assert not said.empty() or until(lambda: not said.empty())
    del found
    assert said.get(timeout=60) == "put"
    assert said.get(timeout=60) == "free"  # although the fork lives
    assert loans.sweep() == 1
    assert back.get(timeout=20) is not None
    os.close(writing)
    os.waitpid(pid, 0)
    assert not received.blocks()
    assert context is not None
    assert context.join(60)


def test_ranks_of_a_forking_default_go_another_way(initialised: None) -> None:
    assert nbmp.default_start_method().method == "forkserver"
    assert "by CuPy" in nbmp.default_start_method().reason
    with pytest.raises(nbmp.CudaForkError, match="spawn"):
        Rank(functions.show, "fork")
