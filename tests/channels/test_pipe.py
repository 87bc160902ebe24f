"""Pipes, with the standard library's meaning."""

from __future__ import annotations

import pickle
from multiprocessing import BufferTooShort
from multiprocessing.connection import wait
from typing import Any

import numpy as np
import pytest

import nbmp
from tests.channels import functions


def test_both_directions_and_the_end(method: str) -> None:
    here, there = nbmp.Pipe()
    context = nbmp.start_processes(functions.answer_connection, (there,), join=False, start_method=method)
    here.send(np.arange(100_000))
    assert here.poll(20)
    assert here.recv()[-1] == 2 * 99_999
    here.send(None)
    assert context is not None
    assert context.join(20)
    there.close()
    with pytest.raises(EOFError):
        here.recv()
    here.close()


def test_simplex_refuses_the_wrong_direction() -> None:
    reading, writing = nbmp.Pipe(duplex=False)
    assert (reading.readable, reading.writable) == (True, False)
    with pytest.raises(OSError, match="read-only"):
        reading.send(1)
    with pytest.raises(OSError, match="write-only"):
        writing.recv()
    with reading, writing:
        writing.send([1])
        assert reading.recv() == [1]
    with pytest.raises(OSError, match="closed"):
        reading.fileno()


def test_bytes_of_any_size() -> None:
    reading, writing = nbmp.Pipe(duplex=False)
    with reading, writing:
        for data in (b"", b"abc", b"x" * 300_000):
            writing.send_bytes(data)
            assert reading.recv_bytes() == data
        writing.send_bytes(b"abcdef", 2, 3)
        buffer = bytearray(5)
        assert reading.recv_bytes_into(buffer, 1) == 3
        assert bytes(buffer) == b"\0cde\0"
        writing.send_bytes(b"abcdef")
        with pytest.raises(BufferTooShort):
            reading.recv_bytes_into(buffer)
        with pytest.raises(ValueError, match="offset"):
            writing.send_bytes(b"abc", 4)


def test_works_with_the_standard_librarys_wait() -> None:
    one, other = nbmp.Pipe()
    with one, other:
        other.send("here")
        ends: list[Any] = [one]  # it has fileno(), which is all that `wait` asks for
        assert wait(ends, timeout=5) == ends


def test_pickled_by_somebody_else_it_says_why_not() -> None:
    one, other = nbmp.Pipe()
    with one, other, pytest.raises(RuntimeError, match="argument or through a queue"):
        pickle.dumps(one)
