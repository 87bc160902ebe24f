"""What runs: the launches and pools of this process. The one place for whoever lists, watches or ends them.

They are held weakly; one with ranks that run is kept by the thread that follows them.
"""

import itertools
import threading
from collections.abc import Iterable, Sequence
from typing import Protocol, TypeVar

from nbmp.launching.private import in_forked_child
from nbmp.launching.record import RankRecord
from nbmp.launching.where.stacks import Stacks
from nbmp.memory.weakly import WeakTable

KINDS = ("launch", "pool", "process")


class Group(Protocol):
    """A launch, a pool, or a single process."""

    kind: str
    """One of `KINDS`."""
    number: int
    """Counts them all, from 1; 0 before it is entered."""
    name: str
    """Given by its user; empty without one."""
    finished: threading.Event

    @property
    def start_method(self) -> str: ...
    @property
    def start_method_reason(self) -> str: ...
    @property
    def ranks(self) -> Sequence[RankRecord]:
        """What is known of its ranks, or of a pool's workers."""

    def stacks(self, ranks: Iterable[int] | None = None, *, timeout: float) -> Stacks:
        """Return where they are."""

    def halt(self, grace_period: float, ranks: Iterable[int] | None = None, *, reason: str = ...) -> str:
        """End them, within about this time; return in a line what became of them."""


Kind = TypeVar("Kind")

_groups: WeakTable[Group] = WeakTable()
_numbers = itertools.count(1)


def enter(group: Group) -> None:
    """List it as long as it lives."""
    group.number = next(_numbers)
    _groups.put(group.number, group)


def running() -> list[Group]:
    """Return the launches and pools with processes that run, in the order of their start."""
    return [group for group in _groups.values() if not group.finished.is_set()]


def known() -> list[Group]:
    """Return all that live, whether they run or have ended."""
    return _groups.values()


def running_of(kind: type[Kind]) -> list[Kind]:
    """Return those of one class."""
    return [group for group in running() if isinstance(group, kind)]


def title(group: Group) -> str:
    """Return what a person calls it: its name, or `launch-3`."""
    return group.name or f"{group.kind}-{group.number}"


in_forked_child(_groups.clear)
