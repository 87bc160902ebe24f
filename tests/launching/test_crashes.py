"""Where a rank was when a fatal signal ended it."""

from __future__ import annotations

import ctypes
import os
import signal

import pytest

import nbmp


def read_address_0(rank: int) -> None:
    ctypes.string_at(0)


def caller_of_the_crash(rank: int) -> None:
    read_address_0(rank)


def abort_in_c(rank: int) -> None:
    ctypes.CDLL(None).abort()


def raise_signal(rank: int) -> None:
    os.kill(os.getpid(), signal.SIGFPE)


@pytest.mark.parametrize(
    ("function", "name"), [(caller_of_the_crash, "SIGSEGV"), (abort_in_c, "SIGABRT"), (raise_signal, "SIGFPE")]
)
def test_stack_of_a_crash_is_told(method: str, function: object, name: str) -> None:
    with pytest.raises(nbmp.ProcessExitedException) as raised:
        nbmp.launch(function, (), 2, start_method=method, grace_period=20)  # type: ignore[arg-type]
    assert raised.value.signal_name == name
    for failure in raised.value.failures:
        assert failure.stack[0].function == function.__name__  # type: ignore[attr-defined]
        assert failure.stack[0].file.endswith("test_crashes.py")
        assert failure.stack[0].source


def test_stack_has_the_frames_of_the_user_outermost_first(method: str) -> None:
    with pytest.raises(nbmp.ProcessExitedException, match="segmentation fault") as raised:
        nbmp.launch(caller_of_the_crash, start_method=method)
    (failure,) = raised.value.failures
    assert [frame.function for frame in failure.stack] == ["caller_of_the_crash", "read_address_0"]


def complain_and_crash(rank: int) -> None:
    os.write(2, b"before\n")
    ctypes.memset(1, 0, 1)


def test_crash_keeps_what_was_written_to_stderr_before(method: str) -> None:
    with pytest.raises(nbmp.ProcessExitedException, match="before"):
        nbmp.launch(complain_and_crash, start_method=method)
