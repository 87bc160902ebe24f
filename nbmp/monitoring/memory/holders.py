"""Who a process is, as a person calls it: the notebook, `ranks 1 2`, `workers 0 1 of pool`."""

import os
from collections.abc import Iterable, Mapping, Sequence
from multiprocessing import parent_process
from typing import NamedTuple

from nbmp.launching import registry
from nbmp.reports import runs

REMEMBERED = 1000
"""Processes that have ended are remembered, so many in all: what they made may outlive them."""

WORDS = {"launch": "rank", "pool": "worker"}


class _Place(NamedTuple):
    group: str
    kind: str
    rank: int


class Holders:
    """Names of this process and of ranks and workers, as they were at the last look."""

    def __init__(self, own: str = "this process") -> None:
        self._own = own
        self._places: dict[int, _Place] = {}
        self._running: set[str] = set()
        self._texts: dict[tuple[int, ...], str] = {}
        """Of one look: most segments are had by the same processes."""

    def look(self, names: Mapping[int, str]) -> None:
        """See who runs now; `names` are those of launches and pools, by their numbers."""
        self._running, self._texts = set(), {}
        for group in registry.known():
            title = group.name or names.get(group.number) or registry.title(group)
            if not group.finished.is_set():
                self._running.add(title)
            for record in group.ranks:
                if record.pid is not None:
                    self._places.pop(record.pid, None)  # to the end: those seen last are forgotten last
                    self._places[record.pid] = _Place(title, group.kind, record.shown_as)
        for pid in list(self._places)[:-REMEMBERED]:
            del self._places[pid]

    def text(self, pids: Iterable[int]) -> str:
        """Return who these are: `notebook, ranks 1 2`; of several launches with their names; the pid of a stranger."""
        asked = tuple(pids)
        if asked not in self._texts:
            self._texts[asked] = self._text(asked)
        return self._texts[asked]

    def _text(self, pids: Sequence[int]) -> str:
        words, strangers = [], []
        members: dict[_Place, list[int]] = {}
        parent = parent_process()
        for pid in pids:
            place = self._places.get(pid)
            if pid == os.getpid():
                words.append(self._own)
            elif parent is not None and pid == parent.pid:
                words.append("the launching process")
            elif place is None:
                strangers.append(pid)
            else:
                members.setdefault(place._replace(rank=0), []).append(place.rank)
        words += [self._member(place, ranks) for place, ranks in members.items()]
        if strangers:
            words.append(f"pid{'s' if len(strangers) > 1 else ''} {' '.join(map(str, strangers))}")
        return ", ".join(words)

    def _member(self, place: _Place, ranks: Sequence[int]) -> str:
        word = WORDS.get(place.kind)
        if word is None:
            return place.group
        text = f"{word}{'s' if len(ranks) > 1 else ''} {numbers(ranks)}"
        return text if len(self._running | {place.group}) == 1 else f"{text} of {place.group}"


def numbers(found: Iterable[int]) -> str:
    """Return them in order, three or more that follow each other as a range."""
    words = (f"{run[0]}\N{EN DASH}{run[-1]}" if len(run) > 2 else " ".join(map(str, run)) for run in runs(found))
    return " ".join(words)
