"""Rubbish in place of a message: an error that says so, and the next message comes.

Packets are our own with a part of the framing replaced, or no packets at all; with descriptors that lead to anything.
What is inside a pickle is the sender's to say and is not looked at here: whoever has the channel may send any.
"""

from __future__ import annotations

import array
import contextlib
import gc
import os
import pickle
import socket
import struct
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import numpy as np
import psutil
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import nbmp
from nbmp.channels import Channel
from nbmp.errors import BrokenMessageError, MissingSegmentError, OpenFilesError, SharedMemoryError
from nbmp.packets import PACKET
from nbmp.pickling import lone, names, parcel
from nbmp.pickling.arriving import loads
from nbmp.pickling.quick import snapshot

EXAMPLES, VARIANTS = 300, 12
"""Cases of each of the three tests that make them up: 10,800 in all."""
quickly = settings(
    max_examples=EXAMPLES, deadline=None, database=None, derandomize=True, suppress_health_check=list(HealthCheck)
)
TOLD = (BrokenMessageError, MissingSegmentError)
MOST_BYTES = 256 << 20
"""What handling rubbish may take of address space: far less than the sizes that it speaks of."""


def variants(content: bytes, seed: int) -> Iterator[bytes]:
    """Return it as it is, and with something changed: hypothesis takes a hundred times as long for each."""
    random = Random(seed)
    yield content
    for _ in range(VARIANTS - 1):
        changed = bytearray(content or b"\1")
        how = random.randrange(4)
        if how == 0:
            changed = changed[: random.randrange(len(changed))]
        elif how == 1:
            changed += bytes(random.randrange(1, 9))
        else:
            place = random.randrange(min(len(changed), 24))  # where the heads are
            changed[place : place + how - 1] = bytes([random.choice((0, 1, 127, 128, 254, 255))]) * (how - 1)
        yield bytes(changed)


SEEDS = st.integers(0, 1 << 32)
NUMBERS = st.one_of(
    st.integers(0, 5), st.sampled_from([62, 254, 255, 1 << 16, (1 << 31) - 1, 1 << 31, (1 << 32) - 1, (1 << 64) - 1])
)
HEADER = struct.Struct("<BxxxIIQ")
PICKLE = pickle.dumps(("one", 2), 5)


def wrap(bits: int) -> Callable[[int], int]:
    """Return what makes a number fit into so many bits."""
    return lambda number: number & ((1 << bits) - 1)


BYTE, SHORT, WORD, LONG = (NUMBERS.map(wrap(bits)) for bits in (8, 16, 32, 64))
TAILS = st.one_of(st.just(PICKLE), st.binary(max_size=40).filter(lambda tail: tail[:1] != b"\x80"))
"""A pickle, or what is none: the bytes behind a pickle's first one are not ours to check."""

FRAMED = st.builds(
    lambda kind, count, length, outside, sizes, tail: (
        HEADER.pack(kind, count, length, outside) + struct.pack(f"<{len(sizes)}q", *sizes) + tail
    ),
    st.integers(1, 5),
    WORD,
    st.one_of(st.just(len(PICKLE)), WORD),
    st.one_of(st.just((1 << 64) - 1), LONG),
    st.lists(st.integers(-(1 << 63), (1 << 63) - 1) | st.integers(-70, 70), max_size=4),
    TAILS,
)
LONE = st.builds(
    lambda kind, length, check, tail: struct.pack("<BHI", kind, length, check) + tail,
    st.integers(6, 8),
    SHORT,
    WORD,
    st.binary(max_size=60),
)
WRAPPED = st.builds(lambda length, tail: struct.pack("<BQ", 5, length) + tail, LONG, st.binary(max_size=2))
PLAIN = TAILS.map(lambda tail: b"\0" + tail)
CONTENTS = st.one_of(st.binary(max_size=60), FRAMED, LONE, WRAPPED, PLAIN)


def opened_files() -> list[int]:
    """Return descriptors of all kinds, none of which a message would have."""
    empty, some = os.memfd_create("empty"), os.memfd_create("some")
    os.write(some, b"x" * 100)
    sparse = os.memfd_create("sparse")
    os.ftruncate(sparse, 1 << 40)
    reading, writing = os.pipe()
    one, other = socket.socketpair()
    return [
        empty,
        some,
        sparse,
        reading,
        writing,
        one.detach(),
        other.detach(),
        os.open("/dev/null", os.O_RDWR),
        os.open("/", os.O_PATH),
        os.open("/proc/self/status", os.O_RDONLY),
        os.eventfd(0),
    ]


class Holding:
    """What this process holds: nothing may come of rubbish."""

    def __init__(self) -> None:
        nbmp.trim()
        self._fds = len(os.listdir("/proc/self/fd"))
        self._bytes = psutil.Process().memory_info().vms

    def check(self) -> None:
        nbmp.trim()
        gc.collect()
        assert len(os.listdir("/proc/self/fd")) == self._fds
        assert psutil.Process().memory_info().vms - self._bytes < MOST_BYTES


@pytest.fixture(scope="module")
def files() -> Any:
    opened = opened_files()
    yield opened
    for fd in opened:
        os.close(fd)


@pytest.fixture
def holding(files: list[int]) -> Any:
    snapshot(np.zeros(3))
    held = Holding()
    yield held
    held.check()


def read(content: bytes, fds: list[int]) -> Any:
    """Read a parcel that came with duplicates of these descriptors."""
    from nbmp.memory.descriptors import own_all

    owned: list[Any] = []
    own_all(map(os.dup, fds), owned)
    return loads(content, owned)


def test_no_parcel_is_told(files: list[int], holding: Holding) -> None:
    """Mostly: some of what is made up is a parcel, by chance."""
    told = 0

    @quickly
    @given(CONTENTS, st.lists(st.integers(0, len(files) - 1), max_size=2), SEEDS)
    def attempt(content: bytes, along: list[int], seed: int) -> None:
        nonlocal told
        for variant in variants(content, seed):
            try:
                read(variant, [files[index] for index in along])
            except (BrokenMessageError, SharedMemoryError):
                told += 1
            except Exception:
                assert PICKLE[:1] in variant  # what is wrong is inside a pickle

    attempt()
    assert told > EXAMPLES * VARIANTS // 2


ARRAYS = [
    np.arange(5),
    np.zeros((3, 0), "i2"),
    np.asfortranarray(np.ones((3, 4), ">f4")),
    np.array(["x", "yy"]),
    np.zeros(50_000),
    np.array(5.0),
]


def test_damaged_array_is_told(holding: Holding) -> None:
    """A byte of the description is another one, or bytes are missing, or there are more of them."""
    sent = [lone.parcel_of(one) for one in (*ARRAYS, nbmp.ones(7))]
    parcels = [one.settled() for one in sent if one is not None]
    assert len(parcels) == 7

    @quickly
    @given(st.integers(0, 6), SEEDS)
    def attempt(number: int, seed: int) -> None:
        whole, random = parcels[number], Random(seed)
        for _ in range(VARIANTS):
            content = bytearray(whole.content)
            content[random.randrange(7 + struct.unpack_from("<H", content, 1)[0])] ^= random.randrange(1, 256)
            more = random.randrange(-3, 4)
            changed = bytes(content[:more] if more < 0 else content + bytes(more))
            with pytest.raises(BrokenMessageError):
                read(changed, [owner.fd for owner in whole.owners])

    attempt()
    parcels.clear()
    sent.clear()


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

    @quickly
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
