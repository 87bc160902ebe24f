"""What other threads ask a pool's thread to do."""

from __future__ import annotations

import os
from typing import Any

import pytest

from nbmp.launching.private import Descriptor
from nbmp.pools.requests import Requests


def test_one_who_asks_while_the_thread_ends_writes_to_no_other_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """The eight bytes went to whatever had the number then: the channel of the next pool, as a task of nonsense."""
    requests = Requests(Requests.descriptor())
    requests.asleep = True
    write, opened = os.eventfd_write, []

    def write_late(fd: int, value: int) -> Any:
        requests.close()
        opened.append(Descriptor(os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)))  # gets the number if it is free
        return write(fd, value)

    monkeypatch.setattr(os, "eventfd_write", write_late)
    requests.ask(lambda: None)
    with pytest.raises(BlockingIOError):
        os.eventfd_read(opened[0].fileno())
    requests.ask(lambda: None)
    assert len(opened) == 1
