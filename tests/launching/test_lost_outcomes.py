"""A rank that closes what carries its outcome or its output, or writes to it: said, not a riddle."""

from __future__ import annotations

import os
import sys

import pytest

import nbmp
from nbmp.channels import Channel


def close_all(rank: int, first: int, *, fail: bool = False) -> int:
    os.closerange(first, 256)
    if fail:
        raise ValueError("the reason")
    return 5


def close_and_reuse(rank: int) -> None:
    os.closerange(3, 256)
    for _ in range(64):
        os.open(os.devnull, os.O_RDONLY)


def close_output(rank: int) -> int:
    os.close(1)
    return 5


def print_without_output(rank: int) -> None:
    os.close(1)
    print("nobody reads this")


@pytest.mark.parametrize("first", [0, 3])
def test_rank_that_closed_its_channel_is_told_apart(method: str, first: int) -> None:
    with pytest.raises(nbmp.ProcessExitedException, match=r"result \(or exception\) is lost.*os\.closerange"):
        nbmp.launch(close_all, (first,), 2, start_method=method)


def test_rank_that_put_other_files_in_its_place_sends_nothing_there(method: str) -> None:
    with pytest.raises(nbmp.ProcessExitedException, match=r"result \(or exception\) is lost"):
        nbmp.launch(close_and_reuse, start_method=method)


def test_its_exception_is_on_its_stderr(method: str) -> None:
    def fail(rank: int) -> None:
        close_all(rank, 3, fail=True)

    with pytest.raises(nbmp.ProcessExitedException, match=r"(?s)is lost.*ValueError: the reason"):
        nbmp.launch(fail, start_method=method)


def test_rank_without_an_output_has_its_result(method: str) -> None:
    assert nbmp.launch(close_output, start_method=method) == [5]


def test_printing_into_nothing_is_the_users_error_and_the_only_one(
    method: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(nbmp.ProcessRaisedException, match="Bad file descriptor"):
        nbmp.launch(print_without_output, start_method=method)
    assert capsys.readouterr().err == ""


def write_into_channel(rank: int, rubbish: bytes) -> int:
    """Be a program that writes to a descriptor which it takes for its own."""
    if rank == 1:
        frame = sys._getframe()
        while not isinstance(channel := getattr(frame.f_locals.get("self"), "_channel", None), Channel):
            assert frame.f_back is not None
            frame = frame.f_back
        os.write(channel.fd, rubbish)
    return rank


@pytest.mark.parametrize("rubbish", [b"Traceback (most recent call last):\n", *(bytes((kind,)) for kind in range(9))])
def test_rank_that_writes_into_its_channel_is_told(rubbish: bytes) -> None:
    """What came instead of its result, if not its result, cannot be known. The others are heard."""
    context = nbmp.start_processes(write_into_channel, (rubbish,), 2, join=False, start_method="fork")
    assert context is not None
    with pytest.raises(nbmp.ProcessRaisedException, match="BrokenMessageError: what arrived is no message") as raised:
        context.join(grace_period=60)
    assert context.finished.wait(60)
    assert raised.value.error_index == 1
    assert context.results[0] == 0
