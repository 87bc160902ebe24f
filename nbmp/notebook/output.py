"""Lines and displays of ranks, under the cell that launched them.

    main thread                        `sink_here`, once for each launch: notes the streams and the cell
    supervisor, one for each launch    `write` and `display`, also after the cell has ended
    kernel's IO thread                 sends, in the order of `schedule`; whoever prints hands over to it as well

Ways that do not work from a thread: `print` (the latest cell gets it on most ipykernels), `set_parent` (global up to
6.28), the `Output` widget (resends everything at each line). So each message is built with an explicit parent. The
kernel's session is used in its IO thread alone, as the kernel's own streams do.
"""

import sys
import threading
from collections.abc import Sequence
from itertools import groupby
from typing import Any

from nbmp.launching.frontends import Chunk, Display, Sink, tagged

COLOURS = (36, 35, 33, 34, 32, 96, 95, 93, 94, 92)
"""Tags by rank; no red, which means an error."""

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


class LaunchSink:
    """Shows what the ranks of one launch write, where the output of the launching code went at that moment.

    That is the cell for each stream that is the kernel's own, and the stream itself for one that was
    redirected (a terminal, a file, `%%capture`)."""

    def __init__(self, shell: Any, ready: threading.Event):
        self._ready = ready
        self._channel = channel_here(shell)
        self._streams = {name: getattr(sys, name) for name in ("stdout", "stderr")}
        self._publisher = shell.display_pub

    def write(self, chunks: Sequence[Chunk]) -> None:
        self._ready.wait(WAIT)  # the table of ranks comes first
        for name, group in groupby(chunks, key=lambda chunk: chunk.stream):
            stream = self._streams[name]
            if self._channel and _is_kernels(stream):
                content = {"name": name, "text": "".join(map(coloured, group))}
                self._channel.send("stream", content, b"stream." + name.encode())
            elif stream is not None:
                mark = coloured if getattr(stream, "isatty", bool)() else tagged
                stream.write("".join(map(mark, group)))
                stream.flush()

    def display(self, rank: int, message: Display) -> None:
        self._ready.wait(WAIT)
        if self._channel and hasattr(self._publisher, "pub_socket"):
            self._channel.send(message.kind, dict(message.content))
        elif message.kind == "clear_output":
            self._publisher.clear_output(**message.content)
        else:
            self._publisher.publish(**message.content, update=message.kind == "update_display_data")


def sink_here(shell: Any, ready: threading.Event) -> Sink:
    """Return the sink for the code that runs now. Its first line waits for `ready`, a moment at most."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    return LaunchSink(shell, ready)


def channel_here(shell: Any) -> CellChannel | None:
    """Return a channel to the cell that runs now; None when there is no kernel or the output does not go to
    it."""
    for stream in (sys.stdout, sys.stderr):
        if _is_kernels(stream) and hasattr(shell, "kernel"):
            return CellChannel(stream)
    return None


def _is_kernels(stream: Any) -> bool:
    return all(hasattr(stream, name) for name in ("session", "pub_thread", "parent_header"))


def coloured(chunk: Chunk) -> str:
    """Return the chunk's lines, each with a `[rank] ` or `[label] ` in the rank's colour in front."""
    return tagged(chunk, f"\x1b[{COLOURS[chunk.rank % len(COLOURS)]}m[{chunk.label or chunk.rank}]\x1b[0m ")
