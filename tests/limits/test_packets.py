"""Messages that do not fit into a packet, and systems that allow small packets only."""

from __future__ import annotations

import socket
from typing import Any

import numpy as np
import pytest

import nbmp

LARGE: dict[str, Any] = {
    "text": "x" * 5_000_000,
    "many small buffers": [np.full(3, i) for i in range(10_000)],
    "many middling buffers": [np.full(200, i) for i in range(10_000)],
    "bytes that are not quite inline": bytes(64 * 1024 - 40),
    "pickle of just the limit": "y" * (64 * 1024 - 20),
    "deep": [[str(i) * 10] * 5 for i in range(20_000)],
}


def same(one: Any, other: Any) -> bool:
    if isinstance(one, list) and isinstance(one[0], np.ndarray):
        return len(one) == len(other) and all(map(np.array_equal, one, other))
    return bool(one == other)


@pytest.mark.parametrize("size", [None, 1, 20_000])
@pytest.mark.parametrize("name", LARGE)
def test_message_of_any_size_passes_whatever_the_room_of_a_socket(name: str, size: int | None) -> None:
    q, obj = nbmp.Queue(), LARGE[name]
    if size is not None:
        q._writer._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, size)
    shared = nbmp.ones(20_000)
    q.put((obj, shared))
    arrived, memory = q.get(timeout=20)
    assert same(arrived, obj)
    memory[0] = 5
    assert shared[0] == 5


def test_bytes_of_a_pipe_keep_their_length_with_little_room() -> None:
    reader, writer = nbmp.Pipe()
    with reader, writer:
        writer._open()._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1)
        for size in (10, 5_000, 60_000, 100_000):
            writer.send_bytes(b"z" * size)
            assert reader.recv_bytes() == b"z" * size


def test_five_thousand_descriptors_in_one_message() -> None:
    q = nbmp.Queue()
    array = nbmp.zeros(5_000)
    q.put([nbmp.Queue() for _ in range(1_700)])  # three each
    queues = q.get(timeout=60)
    assert len(queues) == 1_700
    queues[-1].put(array)
    assert np.shares_memory(queues[-1].get(timeout=5), array)


def test_hundred_thousand_small_shared_arrays() -> None:
    q = nbmp.Queue()
    arrays = [nbmp.full(1, i, "i8") for i in range(100_000)]
    q.put(arrays)
    arrived = q.get(timeout=60)
    assert len(arrived) == 100_000
    for i in range(0, 100_000, 997):
        arrived[i][0] = -i
        assert arrays[i][0] == -i
    del arrived
    for start in range(0, 100_000, 100):
        for array in arrays[start : start + 100]:
            q.put(array)
        back = [q.get(timeout=5) for _ in range(100)]
        assert np.shares_memory(back[3], arrays[start + 3])
