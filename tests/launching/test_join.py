"""Waiting for ranks: what `join` returns or raises, and that it says so again."""

from __future__ import annotations

import os
import re
import signal
import threading
import time
from pathlib import Path

import pytest

import nbmp
from nbmp.launching.timeouts import stop_late
from tests.launching import functions
from tests.waiting import content, none_runs, tell, until


@pytest.mark.parametrize("timeout", [0, -1, 0.01])
def test_join_that_only_looks_returns_false_while_ranks_run(method: str, timeout: float, tmp_path: Path) -> None:
    context = functions.begin(functions.wait_for, (str(tmp_path / "go"),), 2, method)
    assert context.join(timeout) is False
    assert context.join(timeout=timeout) is False
    tell(tmp_path / "go", "now")
    assert context.join() is True
    assert context.join(timeout) is True


def test_blocking_join_returns_only_when_all_have_ended(method: str, tmp_path: Path) -> None:
    context = functions.begin(functions.first_ends_second_waits, (str(tmp_path),), 2, method)
    assert until(lambda: context.ranks[0].ended)
    threading.Timer(0.1, tell, (tmp_path / "go", "now")).start()
    assert context.join() is True
    assert context.results == ["first", "second"]


def test_join_after_success_says_true_again(method: str) -> None:
    context = functions.begin(functions.pid, (), 2, method)
    assert [context.join(), context.join(), context.join(0)] == [True, True, True]


def fail_in_0_stay_in_1(rank: int, folder: str) -> None:
    if rank == 0:
        raise ValueError("of rank 0")
    functions.stay(rank, folder)


def test_join_after_a_failure_says_the_same_again(method: str, tmp_path: Path) -> None:
    context = functions.begin(fail_in_0_stay_in_1, (str(tmp_path),), 2, method)
    errors = []
    for timeout in (None, None, 0):
        with pytest.raises(nbmp.ProcessRaisedException) as raised:
            context.join(timeout)
        errors.append(raised.value)
    assert len({str(error) for error in errors}) == 1
    assert errors[0].failures == errors[1].failures == errors[2].failures
    assert errors[0] is not errors[1]  # each refers to the frames of whoever heard it
    assert errors[0].error_index == 0
    assert len(errors[0].failures) == 1
    assert [record.state for record in context.ranks] == ["raised", "stopped"]
    assert none_runs(pid for pid in context.pids() if pid)


def test_join_after_stop_says_that_ranks_were_stopped_and_again(method: str, tmp_path: Path) -> None:
    context = functions.begin(functions.stay, (str(tmp_path),), 2, method)
    content(tmp_path / "pid1")
    context.stop()
    for _ in range(2):
        with pytest.raises(nbmp.ProcessExitedException, match=r"signal SIGTERM\nIt was stopped by stop\(\)") as raised:
            context.join()
        assert raised.value.failures == ()
        shown = "\n".join(raised.value._render_traceback_())
        assert "ProcessExitedException\x1b[0m: ranks 0 and 1 of 2 were stopped by stop()\n" in shown
    assert none_runs(pid for pid in context.pids() if pid)


def test_a_launch_and_its_ranks_tell_their_state_by_their_repr(tmp_path: Path) -> None:
    context = functions.begin(functions.stay_then_wait, (str(tmp_path),), 2, "fork")
    content(tmp_path / "pid0"), content(tmp_path / "pid1")
    assert repr(context) == "<nbmp.ProcessContext: 2 ranks by fork, 2 running>"
    (tmp_path / "go").touch()
    assert context.join()
    assert repr(context) == "<nbmp.ProcessContext: 2 ranks by fork, 2 done>"
    assert repr(context.ranks[1]).startswith(f"<rank 1 (pid {context.ranks[1].pid}): done, ")


def test_stop_after_the_end_changes_nothing(method: str) -> None:
    context = functions.begin(functions.pid, (), 2, method)
    assert context.join()
    context.stop()
    assert context.join()


def test_join_polled_until_true_as_torchs_callers_do(method: str) -> None:
    context = functions.begin(functions.give, (None,), 3, method)
    while not context.join(0.005):
        pass
    assert [record.state for record in context.ranks] == ["done", "done", "done"]


def fail_in_turn(rank: int, folder: str) -> None:
    """Rank 2 fails first, then 0; rank 1 ends well."""
    if rank == 0:
        functions.wait_for(rank, f"{folder}/2")
        raise KeyError("second by time")
    if rank == 2:
        functions.wait_for(rank, f"{folder}/started0")
        try:
            raise ValueError("first by time")
        finally:
            threading.Timer(0.2, tell, (f"{folder}/2", "failed")).start()
    tell(f"{folder}/started0", "yes")


def test_first_failure_by_time_is_raised_and_others_are_kept_in_rank_order(method: str, tmp_path: Path) -> None:
    context = functions.begin(fail_in_turn, (str(tmp_path),), 3, method)
    with pytest.raises(nbmp.ProcessRaisedException, match="first by time") as raised:
        context.join(grace_period=20)
    error = raised.value
    assert error.error_index == 2
    assert isinstance(error.__cause__, ValueError)
    assert [(failure.rank, failure.summary) for failure in error.failures] == [
        (0, "KeyError: 'second by time'"),
        (2, "ValueError: first by time"),
    ]
    assert error.failures[1].when < error.failures[0].when
    assert error.world_size == 3


def fail_all(rank: int, folder: str) -> None:
    tell(f"{folder}/{rank}", rank)
    for other in range(3):
        functions.wait_for(rank, f"{folder}/{other}")
    if rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    raise ValueError(rank)


def test_all_ranks_that_fail_within_the_grace_period_are_told(method: str, tmp_path: Path) -> None:
    with pytest.raises(nbmp.ProcessException) as raised:
        nbmp.launch(fail_all, (str(tmp_path),), 3, start_method=method, grace_period=20)
    failures = raised.value.failures
    assert [failure.rank for failure in failures] == [0, 1, 2]
    assert [failure.signal_name for failure in failures] == [None, "SIGKILL", None]
    assert raised.value.error_index == min(failures, key=lambda failure: failure.when).rank


def test_launch_with_a_timeout_stops_ranks_and_names_them(method: str, tmp_path: Path) -> None:
    begun = time.monotonic()
    with pytest.raises(nbmp.LaunchTimeoutError, match=r"rank 1 of 2 still ran after 3 s and was stopped") as raised:
        nbmp.launch(functions.first_ends_second_waits, (str(tmp_path),), 2, start_method=method, timeout=3)
    assert time.monotonic() - begun < 15
    assert re.search(r"\n  rank 1: tests/waiting\.py, line \d+, in until", str(raised.value))


def test_a_timeout_tells_of_ranks_at_the_same_place_in_a_line(method: str) -> None:
    context = functions.begin(wait_somewhere, (), 3, method)
    assert until(lambda: all(re.search("in wait_(here|there)$", stack.place()) for stack in context.stacks()))
    places = re.findall(r"\n  (ranks? [^:]*): .*, in (\w+)", str(stop_late(context, 1, None)))
    assert places == [("ranks 0 and 1", "wait_here"), ("rank 2", "wait_there")]


def wait_somewhere(rank: int) -> None:
    (wait_here if rank < 2 else wait_there)()


def wait_here() -> None:
    time.sleep(100)


def wait_there() -> None:
    time.sleep(100)


def join_in_rank(rank: int, context: list[nbmp.ProcessContext]) -> str:
    try:
        context[0].join()
    except AssertionError as error:
        return str(error)
    return "joined"


def test_only_the_process_that_started_ranks_can_join_them(tmp_path: Path) -> None:
    context = functions.begin(functions.wait_for, (str(tmp_path / "go"),), 1, "fork")
    assert "only the process that started" in nbmp.launch(join_in_rank, ([context],), start_method="fork")[0]
    tell(tmp_path / "go", "now")
    assert context.join()


def test_two_threads_can_join_the_same_ranks(method: str, tmp_path: Path) -> None:
    context = functions.begin(functions.wait_for, (str(tmp_path / "go"),), 2, method)
    said: list[bool] = []
    threads = [threading.Thread(target=lambda: said.append(context.join())) for _ in range(3)]
    for thread in threads:
        thread.start()
    tell(tmp_path / "go", "now")
    for thread in threads:
        thread.join()
    assert said == [True, True, True]


def test_all_threads_that_join_are_told_the_same_with_what_became_of_the_others(tmp_path: Path) -> None:
    context = functions.begin(fail_in_0_stay_in_1, (str(tmp_path),), 2, "fork")
    errors: list[Exception] = []

    def join() -> None:
        with pytest.raises(nbmp.ProcessRaisedException) as raised:
            context.join()
        errors.append(raised.value)

    threads = [threading.Thread(target=join) for _ in range(4)]
    for thread in threads:
        thread.start()
    join()
    for thread in threads:
        thread.join()
    assert all(vars(error) == vars(errors[0]) for error in errors)
    assert len(errors) == 5
    assert isinstance(errors[0], nbmp.ProcessException)
    assert "rank 1 ended" in errors[0].aftermath
