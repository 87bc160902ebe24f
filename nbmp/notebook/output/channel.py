"""The way from this process to one cell, from any thread.

Ways that do not work from a thread: `print` (the latest cell gets it on most ipykernels), `set_parent` (global up to
6.28), the `Output` widget (resends everything at each line). So each message is built with an explicit parent. The
kernel's session is used in its IO thread alone, as the kernel's own streams do.

A program that runs a notebook (nbclient, nbconvert, papermill, the build of a book) takes what comes for the cell that
it runs until that cell is done, and drops the rest. There, what comes after its cell goes to the cell that runs then.
"""

import sys
import threading
from typing import Any

WAIT = 2.0
"""Seconds to wait for a kernel that does not send; then go on without."""


class CellChannel:
    """Sends messages to the front ends of a kernel, as outputs of one cell, from any thread.

    Attributes
    ----------
    is_read : bool
        Whether a person may look at the cell, not a program.
    """

    def __init__(self, stream: Any, is_read: bool = True):
        self.is_read = is_read
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
        parent = self._parent if self.is_read else _running or self._parent
        try:
            self._session.send(self._io, kind, content=content, parent=parent, ident=topic)
        except (TypeError, ValueError) as error:  # JSON cannot take it; nobody is here to whom it could be raised
            if "data" in content:
                said = {"data": {"text/plain": f"<cannot be shown: {_plain(error)}>"}, "metadata": {}}
                self._session.send(self._io, kind, content={**content, **said}, parent=parent, ident=topic)
        finally:
            self._sent.set()


def _plain(error: Exception) -> str:
    return ascii(f"{type(error).__name__}: {error}")[1:-1]


def channel_here(shell: Any) -> CellChannel | None:
    """Return a channel to the cell that runs now; None when there is no kernel or the output does not go to
    it."""
    for stream in (sys.stdout, sys.stderr):
        if is_kernels(stream) and hasattr(shell, "kernel"):
            return CellChannel(stream, not is_unattended(shell))
    return None


def is_unattended(shell: Any) -> bool:
    """Return whether a program runs this notebook: it is known by not letting the kernel ask for input."""
    kernel = getattr(shell, "kernel", None)
    return kernel is not None and not getattr(kernel, "_allow_stdin", True)


_running: dict[str, Any] | None = None
"""What the cell is called that runs now in a kernel."""


def note_running(stream: Any) -> None:
    """A cell begins: `stream` is the kernel's own, and leads to it."""
    global _running
    _running = dict(stream.parent_header) if is_kernels(stream) else None


def is_kernels(stream: Any) -> bool:
    """Return whether what is written to this stream goes to the front ends of a kernel."""
    return all(hasattr(stream, name) for name in ("session", "pub_thread", "parent_header"))
