"""Segments as they are seen from outside: by what each process has mapped and open.

What a segment is for, and who made it, stand in its name:

    file_descriptor    memfd:nbmp-<pid of creator>-<purpose>
    file_system        /dev/shm/nbmp-<user>-<random>/<pid of creator>-<purpose>-<random>

The operating system tells who has which of them mapped or open. Whether one that is kept for messages is free, the
recycler knows in this process; of other processes the locks and names of the file tell it.
"""

import contextlib
import os
import re
from functools import lru_cache
from typing import NamedTuple, TypeVar

from nbmp.memory.recycler import recycler
from nbmp.platforms.memoryfiles import Key, Mapping, locked_files, mapped_bytes, memory_files, named_files

IN_USE, CACHED = "in use", "cached"

Value = TypeVar("Value")

_MEMFD = re.compile(r"/memfd:nbmp-(\d+)-(?!gpu\b)(\w+)")  # not those of nbmp.cuda.loans, which have no memory
_NAMED = re.compile(r"/dev/shm/nbmp-[^/]+/(\d+)-(\w+)-")


class SegmentUsage(NamedTuple):
    """One segment at one moment."""

    size: int
    """Bytes that it has room for."""
    taken: int | None
    """Bytes of memory that it takes: pages are taken as they are written to. None where that cannot be known: when no
    process of those looked at has it open, but one has it mapped."""
    state: str
    """`cached` when it is free: kept for the next message, or not given back yet; else `in use`."""
    purpose: str
    """`array`, `arrays` (small ones, together), `message`, `arguments` (ranks copy what they write to) or `board`."""
    strategy: str
    """`file_descriptor` or `file_system`."""
    creator: int
    """The pid of the process that made it, which may have ended."""
    mapped_by: tuple[int, ...]
    """The pids of those that have it mapped. Others may have it open, such as the sender of a message."""
    opened_by: tuple[int, ...]
    """The pids of those that have it open, by a descriptor."""
    key: Key
    """Device and inode: no two segments have the same at one moment."""

    @property
    def bytes(self) -> int:
        """Return what it takes; its size where that is not known."""
        return self.size if self.taken is None else self.taken


class Looks:
    """What was seen in one process after another."""

    def __init__(self) -> None:
        self.processes: list[int] = []
        self.hidden: list[int] = []
        self.own: list[tuple[Mapping, Key]] = []
        """What this process has mapped, once it was looked at."""
        self._names: dict[Key, str] = {}
        self._mapped: list[dict[Key, Mapping]] = []
        """By process, as in `processes`."""
        self._opened: list[dict[Key, os.stat_result]] = []

    def look_at(self, pid: int) -> None:
        """Add what this process has."""
        try:
            files = memory_files(pid, self._names)
        except PermissionError:
            self.hidden.append(pid)
        except OSError:
            pass  # it has ended
        else:
            self.processes.append(pid)
            self._mapped.append(files.mapped)
            self._opened.append(files.opened)
            if pid == os.getpid():
                self.own = files.mappings

    def segments(self) -> list[SegmentUsage]:
        """Return all segments that were seen."""
        unheld = named_files(set(self.processes), self._names)
        mapped, opened = _together(self._mapped), _together([*self._opened, unheld])
        free = {segment.key for segment in recycler.segments() if segment.is_free()}
        free |= {key for key, status in unheld.items() if status.st_nlink == 1}  # a message gives it a second name
        alive, locked = set(self.processes), locked_files()
        mapped_by, opened_by = self._who(self._mapped), self._who(self._opened)
        found = []
        for key in mapped | opened:
            about = _parsed(self._names[key])
            if about is None:
                continue
            strategy, creator, purpose = about
            is_free = key in free
            if purpose == "message" and strategy == "file_descriptor" and creator in alive and locked is not None:
                is_free = key not in locked
            status = opened.get(key) or _status_of_name(self._names[key], key)
            found.append(
                SegmentUsage(
                    mapped_bytes(mapped[key]) if status is None else status.st_size,
                    None if status is None else status.st_blocks * 512,
                    CACHED if is_free else IN_USE,
                    purpose,
                    strategy,
                    creator,
                    mapped_by.get(key, ()),
                    opened_by.get(key, ()),
                    key,
                )
            )
        return found

    def _who(self, things: list[dict[Key, Value]]) -> dict[Key, tuple[int, ...]]:
        """Return the pids of those that have each. Most have what the one before has: equal tuples are one."""
        found: dict[Key, tuple[int, ...]] = {}
        for pid, those in zip(self.processes, things, strict=True):
            longer: dict[tuple[int, ...], tuple[int, ...]] = {}
            for key in those:
                before = found.get(key, ())
                if before not in longer:
                    longer[before] = (*before, pid)
                found[key] = longer[before]
        return found


def _together(things: list[dict[Key, Value]]) -> dict[Key, Value]:
    first, *rest = things or [{}]
    found: dict[Key, Value] = first
    for those in rest:
        found = found | those
    return found


def _status_of_name(path: str, key: Key) -> os.stat_result | None:
    """Return the status of a segment that nobody has open, but that has a name."""
    if _NAMED.match(path):
        with contextlib.suppress(OSError):
            status = os.stat(path)
            if (status.st_dev, status.st_ino) == key:
                return status
    return None


@lru_cache(maxsize=4096)
def _parsed(path: str) -> tuple[str, int, str] | None:
    """Return strategy, creator and purpose; None for a file that is no segment."""
    if found := _MEMFD.match(path):
        return "file_descriptor", int(found[1]), found[2]
    if found := _NAMED.match(path):
        return "file_system", int(found[1]), found[2]
    return None
