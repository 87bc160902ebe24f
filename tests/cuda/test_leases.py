"""How long lent memory lives: as long as anybody holds it, however they end, and no longer."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from weakref import ref

import pytest

import nbmp
import nbmp.cuda
from nbmp.cuda import driver, makers, received
from nbmp.cuda.loans import loans
from nbmp.memory import janitor
from tests import scripts
from tests.cuda import functions, machine, standin
from tests.cuda.asking import Rank
from tests.cuda.machine import array, neighbours, values, write
from tests.waiting import is_running, until


def is_free() -> bool:
    """Return whether nothing of this process is lent any more."""
    return not loans.sweep()


def test_block_is_kept_while_its_consumer_has_it_and_free_when_it_drops_it(machine: standin.StandIn) -> None:
    rank = Rank(functions.hold_until_told)
    sent = array([1, 2, 3])
    owner = ref(sent.data.mem._owner)
    assert rank.ask(sent) == "held"
    del sent
    gc.collect()
    assert owner() is not None
    assert not is_free()
    assert rank.ask("look") == [1, 2, 3]
    assert rank.answers.get(timeout=60) == "dropped"
    assert until(is_free)
    assert owner() is None
    rank.end()


def test_block_of_a_consumer_that_is_killed_is_free(gpu: str) -> None:
    rank = Rank(functions.hold)
    pid, seen = rank.ask(array([1, 2, 3]))
    assert seen == [1, 2, 3]
    assert not is_free()
    os.kill(pid, signal.SIGKILL)
    assert until(is_free)
    with pytest.raises(nbmp.ProcessExitedException, match="SIGKILL"):
        rank.context.join(60)  # type: ignore[union-attr]


def test_block_of_a_message_that_is_never_read_is_free_when_the_queue_goes(gpu: str) -> None:
    queue = nbmp.Queue()
    queue.put(array([1, 2, 3]))
    assert not is_free()
    queue.close()
    del queue
    gc.collect()
    assert is_free()


def test_block_of_a_message_that_waits_in_the_queue_of_a_killed_process_is_free(gpu: str) -> None:
    rank = Rank(functions.hold)
    rank.ask(array([1]))
    rank.requests.put(array([2]))  # never read
    rank.context.stop(0)  # type: ignore[union-attr]
    assert loans.sweep() == 1
    del rank
    gc.collect()
    assert until(is_free)


def test_five_arrays_deleted_right_after_they_were_put_arrive_intact(gpu: str) -> None:
    queue = nbmp.Queue()
    context = nbmp.start_processes(functions.produce, (queue, 5), 1, join=False, start_method="spawn")
    for number in range(5):
        found = queue.get(timeout=60)
        assert values(found) == [number] * 5
        del found
    assert context is not None
    assert context.join(60)


def test_each_block_of_a_message_is_free_as_soon_as_its_own_arrays_are_dropped(gpu: str) -> None:
    there, back = nbmp.Queue(), nbmp.Queue()
    context = nbmp.start_processes(functions.keep_first, (there, back), 1, join=False, start_method="forkserver")
    there.put(neighbours([1], [2], [3]))
    assert back.get(timeout=60) == "kept"
    assert until(lambda: loans.sweep() == 1)
    there.put(None)
    assert context is not None
    assert context.join(60)
    assert until(is_free)


def test_received_array_is_sent_on_to_a_third_process_and_outlives_the_second(gpu: str) -> None:
    middle, last = nbmp.Queue(), Rank(functions.hold_until_told)
    context = nbmp.start_processes(functions.pass_on, (middle, last.requests), 1, join=False, start_method="spawn")
    sent = array([1, 2, 3])
    middle.put(sent)
    assert last.answers.get(timeout=60) == "held"
    assert context is not None
    for pid in context.pids():
        os.kill(pid, signal.SIGKILL)  # type: ignore[arg-type]
    assert until(lambda: not any(is_running(pid) for pid in context.pids() if pid))
    write(sent, 9)
    assert not is_free()
    assert last.ask("look") == [9, 9, 9]
    assert last.answers.get(timeout=60) == "dropped"
    assert until(is_free)
    last.end()
    with pytest.raises(nbmp.ProcessExitedException):
        context.join(60)


def test_received_array_comes_home_as_the_original(gpu: str) -> None:
    there, back = nbmp.Queue(), nbmp.Queue()
    context = nbmp.start_processes(functions.pass_on, (there, back), 1, join=False, start_method="forkserver")
    sent = array([[1, 2], [3, 4]])
    there.put(sent[:, 1])
    found = back.get(timeout=60)
    assert found.data.mem is sent.data.mem
    assert values(found) == [2, 4]
    there.put(None)
    assert context is not None
    assert context.join(60)


def test_many_arrays_take_two_hops(gpu: str) -> None:
    source, target = nbmp.Queue(), nbmp.Queue()
    context = nbmp.start_processes(functions.pass_on, (source, target), 1, join=False, start_method="spawn")
    total, count = 0, 200 if machine.is_stand_in() else 2000
    for number in range(count):
        source.put(neighbours([number])[0])
        if number % 10 == 9:
            total += sum(values(target.get(timeout=60))[0] for _ in range(10))
    assert total == sum(range(count))
    source.put(None)
    assert target.get(timeout=60) is None
    assert context is not None
    assert context.join(60)
    assert until(is_free)


def test_memory_is_closed_before_its_producer_may_free_it(
    machine: standin.StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = threading.Event()

    def close_late(base: int, device: int) -> None:
        assert closed.wait(60)
        machine.close_memory(base, device)

    monkeypatch.setattr(driver, "close_memory", close_late)
    queue, said = nbmp.Queue(), nbmp.Queue()
    context = nbmp.start_processes(functions.produce_once, (queue, said), 1, join=False, start_method="spawn")
    queue.get(timeout=60)
    assert said.get(timeout=60) == "put"
    assert not until(lambda: not said.empty(), 1)
    closed.set()
    assert said.get(timeout=60) == "free"
    assert context is not None
    assert context.join(60)


def test_same_array_sent_many_times_is_one_loan(gpu: str) -> None:
    queue = nbmp.Queue()
    sent = array([1, 2])
    for _ in range(20):
        queue.put(sent)
    assert loans.sweep() == 1
    found = [queue.get(timeout=20) for _ in range(20)]
    assert all(one.data.mem is sent.data.mem for one in found)


def test_same_block_received_twice_is_one_use_and_its_first_lease_is_enough(gpu: str) -> None:
    rank = Rank(functions.keep_two)
    sent = array([1, 2, 3])
    assert rank.ask(sent[1:]) == 1
    assert rank.ask(sent[:1]) == 1
    assert not is_free()
    rank.end()
    assert until(is_free)


def test_view_keeps_the_block(gpu: str) -> None:
    rank = Rank(functions.keep_view)
    assert rank.ask(array([[1, 2], [3, 4]])) == [3, 4]
    janitor.trim()
    assert not is_free()
    assert rank.ask(None) == [3, 4]
    rank.end()
    assert until(is_free)


def test_usage_tells_what_is_lent_to_whom_and_what_was_received(gpu: str) -> None:
    rank = Rank(functions.tell_usage)
    sent = array([1, 2, 3])
    assert nbmp.cuda.memory_usage().lent == ()
    assert rank.ask(sent) == [(sent.data.mem.size, os.getpid())]
    (lent,) = nbmp.cuda.memory_usage().lent
    assert (lent.size, lent.held_by) == (sent.data.mem.size, (rank.pid,))
    assert lent.device.startswith("GPU-")
    assert f"to {rank.pid}" in str(nbmp.cuda.memory_usage())
    assert "gpu" not in {segment.purpose for segment in nbmp.memory_usage().segments}  # no memory of the host's
    rank.end()
    assert until(is_free)
    assert nbmp.cuda.memory_usage().lent_bytes == 0


def test_collect_gives_back_at_once_what_was_dropped(gpu: str) -> None:
    queue = nbmp.Queue()
    context = nbmp.start_processes(functions.produce_for_ever, (queue, queue), 1, join=False, start_method="spawn")
    found = queue.get(timeout=60)
    assert nbmp.cuda.memory_usage().received_bytes == found.data.mem.size
    del found
    nbmp.cuda.ipc_collect()
    assert nbmp.cuda.memory_usage().received == ()
    assert context is not None
    context.stop(0)


def test_what_is_over_is_let_go_while_more_is_lent(gpu: str) -> None:
    queue = nbmp.Queue()
    for _ in range(100):
        queue.put(neighbours([1])[0])
        queue.get(timeout=20)
    assert len(list(loans)) <= 10


PRODUCER = """
    import os, sys, time
    import nbmp
    import nbmp.cuda
    from tests.cuda import functions
    from tests.cuda.machine import array

    nbmp.cuda.set_exit_timeout(float(sys.argv[1]))
    requests, answers = nbmp.Queue(), nbmp.Queue()
    context = nbmp.start_processes(functions.hold_a_while, (requests, answers, float(sys.argv[2])), 1, join=False,
                                   daemon=True, start_method="spawn")
    requests.put(array([1, 2, 3]))
    print(answers.get(timeout=60), flush=True)
    from nbmp.cuda.exiting import wait_for_borrowers
    begun = time.monotonic()
    print(wait_for_borrowers(), flush=True)
"""


@pytest.mark.violates("freed that process")
def test_producer_waits_at_its_exit_for_who_holds_its_memory(gpu: str, tmp_path: Path) -> None:
    done = scripts.run(tmp_path, PRODUCER, "30", "2")
    pid, waited = done.stdout.split()
    assert waited == "True", done.stderr
    assert "waiting at exit, 30 s at most, because 1 block of its GPU memory" in done.stderr
    assert f"held by process {pid}" in done.stderr


@pytest.mark.violates("freed that process")
def test_wait_of_a_producer_is_bounded_and_names_who_holds(gpu: str, tmp_path: Path) -> None:
    done = scripts.run(tmp_path, PRODUCER, "0.3", "600")
    pid, waited = done.stdout.split()
    assert waited == "False"
    assert "this process ends although 1 block of its GPU memory" in done.stderr
    assert f"still held by process {pid}; what they do with it from now on is undefined" in done.stderr


def test_rank_that_has_put_an_array_ends_when_that_was_received_and_dropped(gpu: str) -> None:
    queue, said = nbmp.Queue(), nbmp.Queue()
    context = nbmp.start_processes(functions.produce_and_say, (queue, said), 1, join=False, start_method="spawn")
    pid = said.get(timeout=60)
    assert is_running(pid)
    found = queue.get(timeout=60)
    assert values(found) == [1, 2, 3]
    assert is_running(pid)
    del found
    assert context is not None
    assert context.join(60)


def test_array_of_a_producer_that_was_killed_is_refused_with_the_reason(gpu: str) -> None:
    queue, said = nbmp.Queue(), nbmp.Queue()
    context = nbmp.start_processes(functions.produce_for_ever, (queue, said), 1, join=False, start_method="spawn")
    pid = said.get(timeout=60)
    os.kill(pid, signal.SIGKILL)
    assert until(lambda: not is_running(pid))
    with pytest.raises(nbmp.DeviceError, match=f"memory of process {pid} .*that process has ended"):
        queue.get(timeout=60)  # nobody has waited for the process yet
    with pytest.raises(nbmp.ProcessExitedException):
        context.join(60)  # type: ignore[union-attr]
    assert not received.blocks()


def test_process_that_nobody_has_waited_for_has_ended() -> None:
    child = subprocess.Popen([sys.executable, "-c", "pass"])
    assert until(lambda: not is_running(child.pid))
    assert not makers.runs(child.pid)
    child.wait()
    assert not makers.runs(child.pid)
    assert makers.runs(os.getpid())


def test_exit_timeout_is_not_negative() -> None:
    with pytest.raises(ValueError, match="not negative"):
        nbmp.cuda.set_exit_timeout(-1)
