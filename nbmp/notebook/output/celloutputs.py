"""What the ranks of one launch write and display, as outputs of a cell that a browser can take.

    lines       as text of the cell, less often the longer that is, since all of it is rendered again each time; beyond
                an allowance as an output of bounded size that says how many are held back (`overflow`)
    displays    with a caption, in places of their rank's own (`displays`)

Time comes in with each call; nothing here waits.
"""

import math
import uuid
from collections.abc import Iterable
from itertools import groupby

from nbmp.launching.frontends import Chunk, Display, tagged
from nbmp.notebook.output.channel import CellChannel
from nbmp.notebook.output.displays import CAPTION, CROWDED, Displays
from nbmp.notebook.output.overflow import Allowance, Overflow

COLOURS = (36, 35, 33, 34, 32, 96, 95, 93, 94, 92)
"""Tags by rank; no red, which means an error."""

PAUSE_PER_LINE = 0.0004
"""Seconds between two additions to a text of one line; of 1,000 lines: 0.4 s, of which the browser is busy for 0.1."""
OVERFLOW_PAUSE = 0.5


class CellOutputs:
    """The outputs of one launch under one cell."""

    def __init__(self, channel: CellChannel) -> None:
        self.number = 0
        """Of the launch, once it is known."""
        self._channel = channel
        self._allowance = Allowance()
        self._displays = Displays()
        self._waiting: list[Chunk] = []
        self._text_due = 0.0
        self._text_name = ""
        self._text_lines = 0
        """Of the output that the next line of stream `_text_name` is added to."""
        self._overflow = Overflow(coloured)
        self._overflow_id = uuid.uuid4().hex
        self._overflow_due = 0.0
        self._overflow_is_behind = False

    def write(self, lines: Iterable[Chunk], now: float) -> None:
        """Show these, now or later."""
        for chunk in lines:
            allowed, further = self._allowance.split(chunk)
            if allowed is not None:
                self._waiting.append(allowed)
            if further is not None:
                self._overflow.add(further)
                self._overflow_is_behind = True
        self.settle(now)

    def display(self, rank: int, message: Display, label: str, now: float) -> None:
        """Show what a rank displays, after what was written before."""
        self._write_text(now)
        for shown in self._displays.take(rank, message, now, label):
            if not isinstance(shown, Chunk):
                self._send(shown)
            elif shown.text in (CAPTION, CROWDED):  # whatever the allowance
                self._waiting.append(shown)
                self._write_text(now)
            else:
                self.write([shown], now)

    def settle(self, now: float) -> float | None:
        """Show what is due; return after how many seconds to call again, None: not before something comes."""
        if self._waiting and now >= self._text_due:
            self._write_text(now)
        for changed in self._displays.after_pause(now):
            self._send(changed)
        if self._overflow_is_behind and now >= self._overflow_due:
            self._show_overflow(now)
        due = (
            self._text_due if self._waiting else math.inf,
            self._displays.due(),
            self._overflow_due if self._overflow_is_behind else math.inf,
        )
        return None if min(due) == math.inf else max(0.0, min(due) - now)

    def end(self, rank: int, now: float) -> None:
        """Show all that waits: this rank has ended."""
        self._write_text(now)
        for changed in self._displays.at_end(now):
            self._send(changed)
        if self._overflow.lines:
            self._overflow.end(rank)
            self._show_overflow(now)

    def _write_text(self, now: float) -> None:
        chunks, self._waiting = self._waiting, []
        for name, group in groupby(chunks, key=lambda chunk: chunk.stream):
            text = "".join(map(coloured, group))
            if name != self._text_name:
                self._text_name, self._text_lines = name, 0
            self._text_lines += text.count("\n")
            self._channel.send("stream", {"name": name, "text": text}, b"stream." + name.encode())
        self._text_due = now + self._text_lines * PAUSE_PER_LINE

    def _send(self, message: Display) -> None:
        if message.kind == "display_data":
            self._text_name = ""  # text that comes after it is a new output
        self._channel.send(message.kind, dict(message.content))

    def _show_overflow(self, now: float) -> None:
        self._write_text(now)
        content = {"data": {"text/plain": self._overflow.text(self.number)}, "metadata": {}}
        kind = "update_display_data" if self._overflow_due else "display_data"
        self._send(Display(kind, {**content, "transient": {"display_id": self._overflow_id}}))
        self._overflow_due, self._overflow_is_behind = now + OVERFLOW_PAUSE, False


def coloured(chunk: Chunk) -> str:
    """Return the chunk's lines, each with a `[rank] ` or `[label] ` in the rank's colour in front."""
    return tagged(chunk, f"\x1b[{COLOURS[chunk.rank % len(COLOURS)]}m[{chunk.label or chunk.rank}]\x1b[0m ")
