"""The columns of the table of ranks."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from html import escape

from nbmp.monitoring.snapshots import ALIVE, LaunchSnapshot, RankSnapshot, duration, share, size, steps
from nbmp.notebook.live.ansi import plain
from nbmp.notebook.live.style import bar, chip

_DESCRIBED = re.compile(r"(?:^| · )((?:(?! · ).)+?): +[\d.,]+[kMGTP]?[^ ]* ?\[")

LONGEST = 300
"""Characters of a last line."""


PSS = "what it takes, measured about once a second: memory that several processes share counts in parts (PSS)"
SHARED = "nbmp's shared memory that it can reach, written to or not; the same memory counts in each rank"


@dataclass(frozen=True)
class Column:
    """One column: its head and cells as HTML. The first has no head of its own, which is what they are called."""

    head: str
    cell: Callable[[RankSnapshot], str]
    classes: str = ""
    is_there: Callable[[RankSnapshot], object] = lambda _: True
    """The column is shown when this is true of any rank."""
    tip: Callable[[RankSnapshot], str] = lambda _: ""
    about: str = ""
    """What its head says to who points at it."""

    def th(self, head: str = "") -> str:
        return f"<th{self._look()}{_attribute('title', escape(self.about))}>{head or self.head}</th>"

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
    called = _bar_names(found.text)
    number = f'<span class="num">{steps(rank)}</span>'
    if called:
        number += f'<span class="called wide">{escape(called)}</span>'
    if not found.total:
        return number
    kind = {"done": "done", "failed": "failed", "stopped": "stopped"}.get(rank.group, "")
    return bar(found.n / found.total, kind) + number


def _bar_names(text: str) -> str:
    """Return what the bars are called, from what stands beside them: `epoch: 1/3 [..] · batch: 4/9 [..]`."""
    return " · ".join(_DESCRIBED.findall(plain(text)))


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
    Column("CPU", lambda rank: share(rank.cpu), "r wide", _is_alive, about="of one core, during the last second"),
    Column('memory<span class="wide"> (PSS)</span>', lambda rank: size(rank.memory), "r", _is_alive, about=PSS),
    Column("shared", lambda rank: size(rank.shared), "r wide", lambda rank: rank.shared, about=SHARED),
    Column("GPU", lambda rank: size(rank.gpu_memory), "r wide", lambda rank: rank.gpu_memory),
    Column("last line", lambda rank: escape(remark(rank)), "last", tip=remark),
)
