"""The way to one cell, with a kernel's session and a thread that are stood in for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from jupyter_client.session import Session

from nbmp.notebook.output.channel import CellChannel


class Stream:
    """What `CellChannel` needs of a kernel's stream: it keeps what is sent."""

    parent_header: dict[str, Any] = {}  # noqa: RUF012

    def __init__(self) -> None:
        self.session = self
        self.pub_thread = self
        self.sent: list[dict[str, Any]] = []

    def schedule(self, call: Callable[[], None]) -> None:
        call()

    def send(self, socket: Any, kind: str, content: dict[str, Any], **_: Any) -> None:
        Session().serialize(Session().msg(kind, content))
        self.sent.append(content)


@pytest.mark.parametrize("value", [object(), "\ud800"])
def test_an_output_that_json_cannot_take_is_told_in_its_place(value: Any) -> None:
    stream = Stream()
    channel = CellChannel(stream)
    transient = {"display_id": "here"}
    channel.send("display_data", {"data": {"text/html": value}, "metadata": {}, "transient": transient})
    channel.send("display_data", {"data": {"text/html": "next"}, "metadata": {}, "transient": {}})
    first, second = stream.sent
    assert first["data"]["text/plain"].startswith("<cannot be shown: ")
    assert first["transient"] == transient
    assert second["data"] == {"text/html": "next"}
