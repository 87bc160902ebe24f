"""The columns of the table of ranks."""

from collections.abc import Callable
from dataclasses import dataclass
from html import escape

from nbmp.monitoring.snapshots import ALIVE, LaunchSnapshot, RankSnapshot, duration, share, size, steps
from nbmp.notebook.live.ansi import plain
from nbmp.notebook.live.style import bar, chip

LONGEST = 300
"""Characters of a last line."""


@dataclass(frozen=True)
class Column:
    """One column: its head and cells as HTML. The first has no head of its own, which is what they are called."""

    head: str
    cell: Callable[[RankSnapshot], str]
    classes: str = ""
    is_there: Callable[[RankSnapshot], object] = lambda _: True
    """The column is shown when this is true of any rank."""
    tip: Callable[[RankSnapshot], str] = lambda _: ""

    def th(self, head: str = "") -> str:
        return f"<th{self._look()}>{head or self.head}</th>"

    def td(self, rank: RankSnapshot) -> str:
        tip = _attribute("title", escape(self.tip(rank)))
        return f"<td{self._look()}{tip}>{self.cell(rank)}</td>"

    def _look(self) -> str:
        # an untrusted notebook keeps no classes, and has all cells at the right
        side = "" if "r" in self.classes.split() else _attribute("style", "text-align:left")
        return _attribute("class", self.classes) + side


def chosen(snapshot: LaunchSnapshot) -> list[Column]:
    """Return the columns that have something to show."""
    return [column for column in COLUMNS if any(map(column.is_there, snapshot.ranks))]


def _attribute(name: str, value: str) -> str:
    return f' {name}="{value}"' if value else ""


def _progress(rank: RankSnapshot) -> str:
    found = rank.progress
    if found is None:
        return ""
    number = f'<span class="num">{steps(rank)}</span>'
    if not found.total:
        return number
    kind = {"done": "done", "failed": "failed", "stopped": "stopped"}.get(rank.group, "")
    return bar(found.n / found.total, kind) + number


def remark(rank: RankSnapshot) -> str:
    """Return what there is to say about a rank, in a line of text."""
    return plain(rank.remark)[:LONGEST]


def _is_alive(rank: RankSnapshot) -> bool:
    return rank.state in ALIVE


COLUMNS = (
    Column("", lambda rank: str(rank.rank), "n", tip=lambda rank: f"pid {rank.pid}"),
    Column("state", lambda rank: chip(rank.group, rank.label)),
    Column(
        "progress",
        _progress,
        is_there=lambda rank: rank.progress is not None,
        tip=lambda rank: rank.progress.text if rank.progress is not None else "",
    ),
    Column("time", duration, "r t"),
    Column("CPU", lambda rank: share(rank.cpu), "r wide", _is_alive),
    Column('memory<span class="wide"> (PSS)</span>', lambda rank: size(rank.memory), "r", _is_alive),
    Column("shared", lambda rank: size(rank.shared), "r wide", lambda rank: rank.shared),
    Column("GPU", lambda rank: size(rank.gpu_memory), "r wide", lambda rank: rank.gpu_memory),
    Column("last line", lambda rank: escape(remark(rank)), "last", tip=remark),
)
