"""The way from this process to one cell, from any thread.

Ways that do not work from a thread: `print` (the latest cell gets it on most ipykernels), `set_parent` (global up to
6.28), the `Output` widget (resends everything at each line). So each message is built with an explicit parent. The
kernel's session is used in its IO thread alone, as the kernel's own streams do.
"""

import sys
import threading
from typing import Any

WAIT = 2.0
"""Seconds to wait for a kernel that does not send; then go on without."""


class CellChannel:
    """Sends messages to the front ends of a kernel, as outputs of one cell, from any thread."""

    def __init__(self, stream: Any):
        self._session = stream.session
        self._io = stream.pub_thread
        self._parent = dict(stream.parent_header)
        self._sent = threading.Event()
        self._sent.set()

    def is_same(self, other: "CellChannel") -> bool:
        """Return whether the other one leads to the same cell."""
        return bool(self._parent) and self._parent.get("msg_id") == other._parent.get("msg_id")

    def send(self, kind: str, content: dict[str, Any], topic: bytes | None = None) -> None:
        """Send one message. Blocks while the one before is not sent yet, which bounds what lies in memory."""
        self._sent.wait(WAIT)
        self._sent.clear()
        self._io.schedule(lambda: self._send_now(kind, content, topic or kind.encode()))

    def _send_now(self, kind: str, content: dict[str, Any], topic: bytes) -> None:
        try:
            self._session.send(self._io, kind, content=content, parent=self._parent, ident=topic)
        finally:
            self._sent.set()


def channel_here(shell: Any) -> CellChannel | None:
    """Return a channel to the cell that runs now; None when there is no kernel or the output does not go to
    it."""
    for stream in (sys.stdout, sys.stderr):
        if is_kernels(stream) and hasattr(shell, "kernel"):
            return CellChannel(stream)
    return None


def is_kernels(stream: Any) -> bool:
    """Return whether what is written to this stream goes to the front ends of a kernel."""
    return all(hasattr(stream, name) for name in ("session", "pub_thread", "parent_header"))
