"""Where ranks are launched from: a notebook, a terminal, a plain script.

The core launches ranks and reads what they write; a *front end* decides where that is shown. The core knows only the
two contracts below. The notebook's front end lives in `nbmp.notebook`, above the core, and is found by a text entry,
so that nothing here imports IPython.
"""

import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from nbmp.launching.context import ProcessContext
    from nbmp.launching.registry import Group

NOTEBOOK = "nbmp.notebook.frontend"
"""Module with the notebook's front end: a function `current()` that returns one, or None without a live shell."""


class Chunk(NamedTuple):
    """Whole lines that one rank wrote: `text` ends with a newline."""

    rank: int
    stream: str
    """`"stdout"` or `"stderr"`."""
    text: str
    label: str = ""
    """What it is tagged with instead of the rank's number."""


class Display(NamedTuple):
    """Something a rank showed with `display()`: the content of a Jupyter display message."""

    kind: str
    """Jupyter's message type: `display_data`, `update_display_data` or `clear_output`."""
    content: dict[str, Any]


class Sink(Protocol):
    """Shows what the ranks of one launch, or the workers of one pool, write. Never called from a rank."""

    shows_progress: bool
    """Whether a person sees in a table how far the ranks are."""

    def entered(self, number: int) -> None:
        """It is the launch, pool or process of that number: `nbmp.output` knows it by that."""

    def write(self, chunks: Sequence[Chunk]) -> None:
        """Show these lines, in this order, tagged with their rank."""

    def display(self, rank: int, message: Display, label: str = "") -> None:
        """Show what `rank` displayed."""

    def settle(self) -> float | None:
        """Show what was held back and is due; return after how many seconds to call again, None: not before a write."""

    def end(self, rank: int) -> None:
        """Show all that was held back of a rank: it has ended, and everything that it wrote was given to `write`."""


class Frontend(Protocol):
    """The place that launches ranks."""

    rank_setup: str | None
    """`"module:function"` that a rank calls with a `send(Display)` function once IPython is there; None: nothing."""

    rank_builtins: Mapping[str, str]
    """Names that are builtins in this place, as `display` in a notebook -> what they stand for in a rank that does not
    inherit them, as `"module:function"`, loaded when it is called."""

    stops_ranks_at_exit: bool
    """Whether ranks that still run at interpreter exit are stopped (a notebook) or waited for (a script)."""

    def sink(self, *, watched: bool = True) -> Sink:
        """Return the sink for a launch that begins now, in the calling thread; `watch` follows if it is `watched`."""

    def watch(self, context: "ProcessContext") -> None:
        """Ranks were started: show a monitor of them, if this place has one."""

    def while_waiting(self) -> None:
        """The main thread waits for ranks: called now and then, to see to what else it has to do. Never raises."""

    def monitor(self, group: "Group") -> bool:
        """Show a monitor of ranks that were started before; return whether this place has one."""

    def cell_name(self, filename: str) -> str | None:
        """Return how a person knows this source file (`"Cell In[3]"`), None when it is an ordinary file."""


class StreamSink:
    """Writes tagged lines to this process' own `sys.stdout` and `sys.stderr`."""

    shows_progress = False

    def entered(self, number: int) -> None:
        pass

    def write(self, chunks: Sequence[Chunk]) -> None:
        for chunk in chunks:
            stream = sys.stderr if chunk.stream == "stderr" else sys.stdout
            if stream is not None:
                stream.write(tagged(chunk))
                stream.flush()

    def display(self, rank: int, message: Display, label: str = "") -> None:
        text = message.content.get("data", {}).get("text/plain")
        if text is not None:
            self.write([Chunk(rank, "stdout", f"{text}\n", label)])

    def settle(self) -> float | None:
        return None

    def end(self, rank: int) -> None:
        pass


class PlainFrontend:
    """A script or an interactive prompt: tagged lines on the standard streams, no monitor."""

    rank_setup: str | None = None
    rank_builtins: Mapping[str, str] = MappingProxyType({})
    stops_ranks_at_exit = False

    def sink(self, *, watched: bool = True) -> Sink:
        return StreamSink()

    def watch(self, context: "ProcessContext") -> None:
        pass

    def while_waiting(self) -> None:
        pass

    def monitor(self, group: "Group") -> bool:
        return False

    def cell_name(self, filename: str) -> str | None:
        return None


def tagged(chunk: Chunk, tag: str = "") -> str:
    """Return the chunk's lines, each with `tag` in front, `[rank] ` or `[label] ` unless given."""
    tag = tag or f"[{chunk.label or chunk.rank}] "
    return tag + chunk.text[:-1].replace("\n", "\n" + tag) + "\n"


_in_rank = False


def be_a_rank() -> None:
    """From here on this process is a rank: what its own ranks write goes to its standard streams, not to a notebook."""
    global _in_rank
    _in_rank = True


def current() -> Frontend:
    """Return the front end of this process: the notebook's where an IPython shell is alive, else the plain one."""
    if "IPython" in sys.modules and not _in_rank:
        found: Frontend | None = import_module(NOTEBOOK).current()
        if found is not None:
            return found
    return PlainFrontend()
