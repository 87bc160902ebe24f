"""Rubbish in what starts a rank and in what it answers: its setup, requests to the fork server, stacks.

Setup and requests are our own with something in their heads changed, and descriptors of all kinds in place of those
that belong to them. Stacks are text, of which a rank may write any.
"""

from __future__ import annotations

import array
import mmap
import os
import signal
import socket
from typing import Any, cast

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import nbmp
from nbmp.channels import Channel
from nbmp.launching import rank
from nbmp.launching.channel import SETUP, TASK, plain
from nbmp.launching.describing import crash_frames
from nbmp.launching.ending import forget_inherited
from nbmp.launching.frontends import PlainFrontend
from nbmp.launching.left import NOTES_BYTES, Notes
from nbmp.launching.messages import END_OF_STACKS, Request
from nbmp.launching.methods import forkserver
from nbmp.launching.record import RankRecord
from nbmp.launching.setups import setups
from nbmp.launching.where.asking import _Question
from nbmp.launching.where.stackfile import FATAL, StackFile
from nbmp.pickling.arriving import TravellingFd
from nbmp.platforms import exit_sentinel
from nbmp.waiting import readable
from tests.hardening.rubbish import SEEDS, quickly, variants
from tests.launching import functions

SECONDS = 30.0
ALONG = st.lists(st.integers(0, 10), max_size=6)
"""Which of the descriptors of all kinds come along."""


def packet(kind: int, obj: Any, count: int) -> bytes:
    """Return what a channel sends for an object of nbmp's own with so many descriptors."""
    return bytes((kind, count)) + plain(obj).content


def send(channel: Channel, content: bytes, fds: list[int]) -> None:
    along = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
    channel._socket.sendmsg([content], along)


def a_setup() -> bytes:
    (told,) = setups(1, False, {}, PlainFrontend(), inherits=False)
    return packet(SETUP, told, 2)


def code_of_rank(content: bytes, fds: list[int]) -> int:
    """Return how a rank ends whose first message is this one, and which gets no task."""
    ours, theirs = Channel.pair()
    lifeline, ending = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        ours.close()
        os.close(ending)
        forget_inherited()
        rank.spawned(theirs.fd, lifeline)
    send(ours, content, fds)
    for end in (ours, theirs):
        end.close()
    sentinel = exit_sentinel(pid)
    try:
        assert readable(sentinel, SECONDS), "it hangs"
    finally:
        os.kill(pid, signal.SIGKILL)
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        for fd in (sentinel, lifeline, ending):
            os.close(fd)
    return code


@pytest.mark.may_keep("children")
def test_rank_whose_setup_is_rubbish_ends(files: list[int]) -> None:
    whole = a_setup()

    @quickly(12)
    @given(ALONG, st.booleans(), SEEDS)
    def attempt(along: list[int], is_whole: bool, seed: int) -> None:
        for content in filter(None, variants(whole, seed)):
            fds = [files[index] for index in along]
            assert code_of_rank(whole if is_whole else content, fds) == 1, (content[:40], along)

    attempt()


@pytest.mark.parametrize("content", [b"Traceback (most recent call last):\n", packet(SETUP, "no setup", 0)])
def test_rank_whose_setup_is_rubbish_is_told(content: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """Something in the launching process has written to the rank's channel."""
    deliver = Channel.send

    def deliver_rubbish(channel: Channel, parcel: Any, kind: int = 0, **how: Any) -> None:
        if kind == SETUP:
            send(channel, content, [])
        deliver(channel, parcel, kind, **how)

    monkeypatch.setattr(Channel, "send", deliver_rubbish)
    with pytest.raises(nbmp.ProcessExitedException) as raised:
        nbmp.launch(functions.give, (1,), 1, start_method="spawn")
    assert "It was starting" in str(raised.value)
    assert ("BrokenMessageError: what arrived is no message" in str(raised.value)) is content.startswith(b"T")


def a_request() -> bytes:
    return packet(TASK, Request(1, *map(TravellingFd, range(5))), 5)


def test_fork_server_goes_on_after_rubbish(files: list[int], capfd: pytest.CaptureFixture[str]) -> None:
    forkserver.stop_server()  # what it writes is looked at
    nbmp.launch(functions.pid, start_method="forkserver")
    server = forkserver._server
    assert server is not None
    whole = a_request()

    @quickly(25)
    @given(ALONG, SEEDS)
    @example([5, 3, 7, 7, 7], 0)
    def attempt(along: list[int], seed: int) -> None:
        for content in filter(None, variants(whole, seed)):
            send(server.channel, content, [files[index] for index in along])
        send(server.channel, packet(TASK, "no request", 0), [])
        assert nbmp.launch(functions.give, (1,), 1, start_method="forkserver") == [1]

    attempt()
    assert forkserver._server is server
    assert server.alive()
    written = capfd.readouterr().err
    assert "nbmp's fork server: something has been written to its descriptor" in written
    assert "nbmp/launching/server.py" not in written, written
    forkserver.stop_server()


NAMES = st.one_of(
    st.text(max_size=20),
    st.sampled_from(
        ["\0", "\\Uffffffff", "\\ud800", "/dev/zero", "/dev", rank.__file__, __file__, "<frozen x>", "x" * 5000]
    ),
)
NUMERALS = st.one_of(
    st.integers(0, 1 << 70).map(str), st.sampled_from(["9" * 5000, "\N{ARABIC-INDIC DIGIT ONE}", "-1", ""])
)
LINES = st.one_of(
    st.builds('  File "{}", line {} in {}\n'.format, NAMES, NUMERALS, NAMES),
    st.builds("Thread {} {}\n".format, NUMERALS, NAMES),
    st.sampled_from([END_OF_STACKS, f"{FATAL}: Aborted\n\n", "\n"]),
    st.text(max_size=20),
)
WRITTEN = st.one_of(
    st.lists(LINES, max_size=6).map("".join).map(lambda text: text.encode(errors="replace")), st.binary()
)


class Asked:
    """Stands for the record of a rank that is asked."""

    pid, shown_as, state, seconds, ended = 1, 0, "running", 1.0, False
    notes = Notes(mmap.mmap(-1, NOTES_BYTES), 0)


def test_stacks_that_are_none_are_none() -> None:
    file = StackFile()
    frontend = PlainFrontend()

    @quickly(300)
    @given(WRITTEN)
    def attempt(written: bytes) -> None:
        os.ftruncate(file.fd, 0)
        os.pwrite(file.fd, written, 0)
        question = _Question(cast(RankRecord, Asked()))
        question._take_all(file.text())
        question._note(1, "MainThread", file.text())
        answer = question.answer(frontend)
        assert answer.text(all_frames=True)
        assert len(crash_frames(file.fatal(), frontend)) <= written.count(b"File")

    attempt()
    file.close()
