"""Lines and displays of ranks, under the cell that launched them.

    main thread                        `sink_here`, once for each launch: notes the streams and the cell
    supervisor, one for each launch    `write` and `display`, also after the cell has ended
    kernel's IO thread                 sends, in the order of `schedule`; whoever prints hands over to it as well

What goes to a cell is kept usable for a browser: see `celloutputs`.
"""

import sys
import threading
import time
from collections.abc import Iterable, Sequence
from functools import partial
from itertools import groupby
from typing import Any

from nbmp.launching.describing import in_cells
from nbmp.launching.frontends import Chunk, Display, tagged
from nbmp.notebook.cells import names as cells
from nbmp.notebook.output.celloutputs import CellOutputs, coloured
from nbmp.notebook.output.channel import WAIT, channel_here, is_kernels


class LaunchSink:
    """Shows what the ranks of one launch write, where the output of the launching code went at that moment.

    That is the cell for each stream that is the kernel's own, and the stream itself for one that was
    redirected (a terminal, a file, `%%capture`). Only a cell is spared floods."""

    def __init__(self, shell: Any, ready: threading.Event, *, shows_progress: bool):
        self.shows_progress = shows_progress
        self._ready = ready
        self._cell_name = partial(cells.cell_name, shell)
        self._streams = {name: getattr(sys, name) for name in ("stdout", "stderr")}
        self._publisher = shell.display_pub
        self._is_terminal = not hasattr(shell, "kernel")
        channel = channel_here(shell)
        self._cell = None if channel is None else CellOutputs(channel)
        self._lock = threading.Lock()  # a pool's workers share it

    def entered(self, number: int) -> None:
        if self._cell is not None:
            self._cell.number = number

    def write(self, chunks: Sequence[Chunk]) -> None:
        self._ready.wait(WAIT)  # the table of ranks comes first
        chunks = [self._in_cells(chunk) if 'File "' in chunk.text else chunk for chunk in chunks]
        with self._lock:
            for is_ours, group in groupby(chunks, key=lambda chunk: is_kernels(self._streams[chunk.stream])):
                if is_ours and self._cell is not None:
                    self._cell.write(group, time.monotonic())
                else:
                    self._write_to_streams(group)

    def display(self, rank: int, message: Display, label: str = "") -> None:
        self._ready.wait(WAIT)
        if self._is_terminal:
            text = message.content.get("data", {}).get("text/plain")
            if text is not None:
                self.write([Chunk(rank, "stdout", f"{text}\n", label)])
            return
        with self._lock:
            if self._cell is not None and hasattr(self._publisher, "pub_socket"):
                self._cell.display(rank, message, label, time.monotonic())
            elif message.kind == "clear_output":
                self._publisher.clear_output(**message.content)
            else:
                self._publisher.publish(**message.content, update=message.kind == "update_display_data")

    def settle(self) -> float | None:
        if self._cell is None:
            return None
        with self._lock:
            return self._cell.settle(time.monotonic())

    def end(self, rank: int) -> None:
        if self._cell is not None:
            with self._lock:
                self._cell.end(rank, time.monotonic())

    def _in_cells(self, chunk: Chunk) -> Chunk:
        """Call cells in a traceback what they are called everywhere else: `Cell In[3]`."""
        return chunk._replace(text=in_cells(chunk.text, self._cell_name)) if chunk.stream == "stderr" else chunk

    def _write_to_streams(self, chunks: Iterable[Chunk]) -> None:
        for name, group in groupby(chunks, key=lambda chunk: chunk.stream):
            stream = self._streams[name]
            if stream is not None:
                mark = coloured if getattr(stream, "isatty", bool)() else tagged
                stream.write("".join(map(mark, group)))
                stream.flush()


def sink_here(shell: Any, ready: threading.Event, *, shows_progress: bool) -> LaunchSink:
    """Return the sink for the code that runs now. Its first line waits for `ready`, a moment at most."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    return LaunchSink(shell, ready, shows_progress=shows_progress)
