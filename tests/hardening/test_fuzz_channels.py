"""Rubbish in a channel: an error that says so, and the next message comes."""

from __future__ import annotations

import array
import contextlib
import os
import socket
import struct
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbmp.channels import Channel
from nbmp.errors import BrokenMessageError, OpenFilesError, SharedMemoryError
from nbmp.packets import PACKET
from nbmp.pickling import names, parcel
from nbmp.pickling.quick import snapshot
from tests.hardening.rubbish import BYTE, CONTENTS, PICKLE, SEEDS, TOLD, WORD, Holding, quickly, variants

PACKETS = st.one_of(
    st.binary(max_size=20),
    st.text(max_size=200).map(str.encode),
    st.builds(lambda kind, count, content: bytes((kind, count)) + content, BYTE, BYTE, CONTENTS),
    st.builds(
        lambda kind, count, head, rest: bytes((kind, 254, count)) + struct.pack("<III", *head) + rest,
        BYTE,
        BYTE,
        st.tuples(WORD, WORD, WORD),
        st.one_of(st.binary(max_size=120), st.just(bytes(88)), st.just(b"nbmp-0-" + b"f" * 81)),
    ),
)


def test_no_packet_is_told_and_the_next_message_comes(files: list[int], holding: Holding) -> None:
    ours, theirs = Channel.pair()
    raw = socket.socket(fileno=os.dup(theirs.fd))
    whole = snapshot("next")

    @quickly()
    @given(PACKETS, st.lists(st.integers(0, len(files) - 1), max_size=3), st.booleans(), SEEDS)
    def attempt(packet: bytes, along: list[int], takes: bool, seed: int) -> None:
        for variant in filter(None, variants(packet, seed)):  # a packet of no bytes is the end
            send_and_receive(variant, along, takes)

    def send_and_receive(packet: bytes, along: list[int], takes: bool) -> None:
        fds = array.array("i", [files[index] for index in along])
        raw.sendmsg([packet], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, fds)] if fds else [])
        theirs.send(whole)
        try:
            if takes:
                ours.take(wait=False)
            else:
                message = ours.receive(wait=False)
                assert message is not None
                message.read()
        except (*TOLD, SharedMemoryError):
            pass
        except OpenFilesError:  # it has descriptors, and says that more are needed: it waits for room, as a message
            ours._socket.recv(PACKET)
        except Exception:
            assert PICKLE[:1] in packet  # as above
        ours._again.clear()  # it may be read once more when there is memory
        assert ours.take(wait=False) == "next"

    attempt()
    for end in (ours, theirs, raw):
        end.close()


def test_text_written_to_a_channel_is_no_message() -> None:
    ours, theirs = Channel.pair()
    for text in (b"Traceback (most recent call last):\n", b"\n", b"x", b"\0\0", b"x" * (PACKET + 1)):
        os.write(theirs.fd, text)
        with pytest.raises(BrokenMessageError, match="no message of nbmp"):
            ours.take(wait=False)
        os.write(theirs.fd, text)
        message = ours.receive(wait=False)
        assert message is not None
        assert message.is_broken
        with pytest.raises(BrokenMessageError):
            message.bytes()
    os.write(theirs.fd, bytes(50))
    with pytest.raises(BrokenMessageError, match="holds no pickle"):
        ours.take(wait=False)


@pytest.mark.parametrize("head", [b"\0\xfa", b"\0\xfe\0" + struct.pack("<I", 1 << 31), b"\0\xfe\xff\xff\xff\xff\xff"])
def test_many_descriptors_that_never_came_are_not_waited_for(head: bytes) -> None:
    import resource

    ours, theirs = Channel.pair()
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    os.write(theirs.fd, head + PICKLE)
    theirs.send(snapshot("next"))
    resource.setrlimit(resource.RLIMIT_NOFILE, (200, limits[1]))
    patch = pytest.MonkeyPatch()
    patch.setattr("nbmp.memory.room.raise_limit", lambda: False)
    try:
        with pytest.raises(BrokenMessageError):
            ours.take(wait=False)
        assert ours.take(wait=False) == "next"
    finally:
        patch.undo()
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


def test_descriptors_that_are_said_to_wait_elsewhere_are_not_waited_for(files: list[int], holding: Holding) -> None:
    """In place of the socket in which they wait: one that nothing comes from, one with too little, none at all."""
    ours, theirs = Channel.pair()
    for fd in files:
        theirs._socket.sendmsg([b"\0\xff" + parcel._PLAIN_BYTE + PICKLE], [(*SCM, array.array("i", [fd]))])
        with contextlib.suppress(*TOLD):
            ours.take(wait=False)
        theirs.send(snapshot("next"))
        assert ours.take(wait=False) == "next"
    ours.close()
    theirs.close()


SCM = (socket.SOL_SOCKET, socket.SCM_RIGHTS)


@pytest.mark.parametrize("lies", ["names", "flight"])
def test_block_of_names_is_only_read_as_far_as_it_is_said_to_go(lies: str, files: list[int], holding: Holding) -> None:
    """A file of a terabyte in place of the block."""
    for count, sessions in ((1, 1), (parcel.MOST_ALONG, 1), (parcel.MOST_ALONG + 1, 1), (0, 1 << 31), (5, 7)):
        packet = memoryview(struct.pack("<III", count, sessions, 0))
        owned: list[Any] = []
        from nbmp.memory.descriptors import own_all

        own_all(map(os.dup, [files[2], files[1 if lies == "flight" else 2]]), owned)
        with pytest.raises(TOLD):
            names.arrive(packet, owned, 0)


def test_shortage_is_no_rubbish(monkeypatch: pytest.MonkeyPatch) -> None:
    """A message for which there is no descriptor is not taken for one that is none."""
    ours, theirs = Channel.pair()
    theirs.send(snapshot(np.zeros(50_000)))

    def short(count: int, fd: int) -> None:
        raise OpenFilesError(24, "none left")

    monkeypatch.setattr("nbmp.channels.make_room", short)
    with pytest.raises(OpenFilesError):
        ours.take(wait=False)
    monkeypatch.undo()
    assert len(ours.take(wait=False)) == 50_000
