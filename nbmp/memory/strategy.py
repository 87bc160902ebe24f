"""Sharing strategies: what kind of segment new arrays and messages are put into.

    file_descriptor    an anonymous memory file, sent as a descriptor; the default
    file_system        a named file in /dev/shm, sent by its name, so that arrays cost few descriptors

Each process has one at a time. Ranks and workers begin with that of the process that launched them. A segment keeps
its kind for life, wherever it goes.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from nbmp import platforms
from nbmp.memory.segment import Segment

if TYPE_CHECKING:
    from nbmp.memory.named import NamedSegment

    AnySegment: TypeAlias = Segment | NamedSegment

NAMED = -1
"""In place of the descriptor of a segment that travels by name."""
FILE_DESCRIPTOR, FILE_SYSTEM = "file_descriptor", "file_system"

Choice = tuple[str, str | None]
"""A strategy, and the session for its segments if it needs one. What is told to ranks."""

when_changed: list[Callable[[], None]] = []
"""Called when another strategy was chosen."""

_current = FILE_DESCRIPTOR


def get_all_sharing_strategies() -> set[str]:
    """Return the names of all sharing strategies."""
    return {FILE_DESCRIPTOR, FILE_SYSTEM}


def get_sharing_strategy() -> str:
    """Return the sharing strategy of this process."""
    return _current


def set_sharing_strategy(new_strategy: str) -> None:
    """Choose how this process, and ranks and workers that it starts from now on, share arrays made from now on.

    Parameters
    ----------
    new_strategy : {"file_descriptor", "file_system"}
        `file_descriptor`, the default: nothing can be left behind and `/dev/shm` is no limit, but each shared array
        above 64 kB takes one or two descriptors. `file_system`: files in `/dev/shm`, which may be small (64 MB in a
        container unless told otherwise); memory is given back within a second or two instead of at once, and is not
        used again by the next message, so that large private arrays travel more slowly.

    Raises
    ------
    ValueError
        For another name.
    UnsupportedPlatformError
        When this system lacks what the strategy needs.
    """
    global _current
    known = get_all_sharing_strategies()
    if new_strategy not in known:
        raise ValueError(f"unknown sharing strategy {new_strategy!r}: it is one of {', '.join(sorted(known))}")
    if new_strategy == FILE_SYSTEM:
        platforms.shared_memory_folder()
    if new_strategy != _current:
        _current = new_strategy
        for tell in when_changed:
            tell()


def goes_by_name() -> bool:
    """Return whether new segments have names."""
    return _current == FILE_SYSTEM


def new_segment(size: int, purpose: str = "array") -> "AnySegment":
    """Return a new segment for arrays; see `Segment.create` and `NamedSegment.create`."""
    if _current == FILE_DESCRIPTOR:
        return Segment.create(size, purpose)
    from nbmp.memory.named import NamedSegment

    return NamedSegment.create(size, purpose)


def choice() -> Choice:
    """Return what ranks are told: the strategy, and our session, so that all of a launch are in one."""
    if _current == FILE_DESCRIPTOR:
        return _current, None
    from nbmp.memory.session import own_session

    return _current, own_session().name


def adopt(told: Choice) -> None:
    """In a rank: do as the launching process does."""
    strategy, session = told
    set_sharing_strategy(strategy)
    if session is not None:
        from nbmp.memory.session import belong_to

        belong_to(session)
