"""Ranks that are ended by a signal: every one is a failure, with its name."""

from __future__ import annotations

import os
import signal

import pytest

import nbmp
from tests.launching import functions
from tests.waiting import content

FATAL = ["SIGTERM", "SIGKILL", "SIGSEGV", "SIGABRT", "SIGHUP", "SIGUSR1", "SIGBUS", "SIGALRM"]


def end_by(rank: int, number: int) -> None:
    signal.signal(number, signal.SIG_DFL) if number not in (signal.SIGKILL,) else None
    os.kill(os.getpid(), number)
    signal.pause()


def ignore_interrupt_of_others(rank: int) -> str:
    os.kill(os.getpid(), signal.SIGINT)
    return "still here"


@pytest.mark.parametrize("name", FATAL)
def test_rank_ended_by_a_signal_is_a_failure_with_its_name(method: str, name: str) -> None:
    number = signal.Signals[name]
    with pytest.raises(nbmp.ProcessExitedException) as raised:
        nbmp.launch(end_by, (int(number),), start_method=method)
    error = raised.value
    assert (error.signal_name, error.exit_code, error.error_index) == (name, -number, 0)
    assert error.msg.splitlines()[0] == f"process 0 terminated with signal {name}"
    assert error.failures[0].signal_name == name


def test_rank_that_ends_itself_by_sigint_with_the_default_action_is_a_failure(method: str) -> None:
    with pytest.raises(nbmp.ProcessExitedException) as raised:
        nbmp.launch(end_by, (int(signal.SIGINT),), start_method=method)
    assert raised.value.signal_name == "SIGINT"


def test_real_time_signal_without_a_name_is_a_failure_with_its_number(method: str) -> None:
    with pytest.raises(
        nbmp.ProcessExitedException, match="process 0 terminated with signal <Unknown signal 40>"
    ) as raised:
        nbmp.launch(end_by, (40,), start_method=method)
    assert raised.value.exit_code == -40
    assert raised.value.signal_name == "<Unknown signal 40>"


@pytest.mark.parametrize("name", ["SIGKILL", "SIGTERM"])
def test_signal_from_outside_is_a_failure(method: str, name: str, tmp_path: object) -> None:
    context = functions.begin(functions.stay, (str(tmp_path),), 1, method)
    pid = context.pids()[0]
    assert pid is not None
    assert content(tmp_path / "pid0") == str(pid)  # type: ignore[operator]
    os.kill(pid, signal.Signals[name])
    with pytest.raises(nbmp.ProcessExitedException) as raised:
        context.join()
    assert raised.value.signal_name == name
    assert raised.value.error_pid == pid


def test_killed_rank_says_who_may_have_killed_it(method: str) -> None:
    with pytest.raises(nbmp.ProcessExitedException, match="out-of-memory"):
        nbmp.launch(end_by, (int(signal.SIGKILL),), start_method=method)


def test_interrupt_from_outside_is_not_the_ranks_business(method: str) -> None:
    assert nbmp.launch(ignore_interrupt_of_others, (), 2, start_method=method) == ["still here", "still here"]


def write_then_end(rank: int) -> None:
    for index in range(8):
        os.write(2, b"complaint %d\n" % index)
    os.kill(os.getpid(), signal.SIGABRT)


def test_last_lines_of_stderr_are_in_the_message(method: str) -> None:
    with pytest.raises(nbmp.ProcessExitedException) as raised:
        nbmp.launch(write_then_end, start_method=method)
    assert "complaint 7" in str(raised.value)
    assert "complaint 0" not in str(raised.value)
