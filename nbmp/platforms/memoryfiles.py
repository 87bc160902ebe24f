"""Which memory files of nbmp a process has mapped or open, read from /proc: nothing of it is opened, nothing locked."""

import contextlib
import os
import re
import stat
from collections.abc import Callable, Collection, Iterable, MutableMapping
from functools import cache, partial
from glob import glob
from typing import Any, NamedTuple

import psutil

Key = tuple[int, int]
"""Device and inode."""
Mapping = tuple[bytes, bytes]
"""Of a part of a file: first and last address, with a minus sign between them, and offset in the file; hexadecimal,
since it is seldom asked for."""

_FILE = rb"(?:/memfd:|/dev/shm/)nbmp-\S+"
_OURS = (b"/memfd:nbmp-", b"/dev/shm/nbmp-")
_LOCK = re.compile(rb"([0-9a-f]+:[0-9a-f]+):(\d+) \d+ \S+$", re.MULTILINE)


class MemoryFiles(NamedTuple):
    """The memory files of one process."""

    mapped: dict[Key, Mapping]
    """The last mapping of each file."""
    opened: dict[Key, os.stat_result]
    mappings: list[tuple[Mapping, Key]]
    """All mappings, by address."""


def memory_files(pid: int, names: MutableMapping[Key, str]) -> MemoryFiles:
    """Look at one process; what the files are called is entered in `names`, which saves asking twice.

    Raises
    ------
    PermissionError
        When it is somebody else's.
    OSError
        When it ends meanwhile.
    """
    with open(f"/proc/{pid}/maps", "rb") as maps:
        content = maps.read()
    mappings: list[tuple[Mapping, Key]] = []
    for line in content.split(b"\n"):
        if b"nbmp-" not in line:
            continue
        range_, _, offset, device, inode, path = line.split(None, 5)
        if path.startswith(_OURS):
            key = _device(device), int(inode)
            mappings.append(((range_, offset), key))
            if key not in names:
                names[key] = path.split(b" ", 1)[0].decode()
    return MemoryFiles({key: mapping for mapping, key in mappings}, _opened(pid, names), mappings)


def mapped_bytes(mapping: Mapping) -> int:
    """Return where the mapping ends in its file."""
    start, end = addresses(mapping)
    return int(mapping[1], 16) + end - start


def addresses(mapping: Mapping) -> tuple[int, int]:
    """Return the address of its first byte, and that behind its last."""
    start, _, end = mapping[0].partition(b"-")
    return int(start, 16), int(end, 16)


@cache
def _device(name: bytes) -> int:
    major, minor = name.split(b":")
    return os.makedev(int(major, 16), int(minor, 16))


def _opened(pid: int, names: MutableMapping[Key, str]) -> dict[Key, os.stat_result]:
    opened: dict[Key, os.stat_result] = {}
    folder = os.open(f"/proc/{pid}/fd", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        look: Callable[[Any], os.stat_result] = partial(os.stat, dir_fd=folder)
        listed: Iterable[Any] = os.listdir(folder)
        if pid == os.getpid():
            look, listed = os.stat, map(int, listed)  # by descriptor: half the time that the path takes
        for fd in listed:
            try:
                status = look(fd)
            except OSError:
                continue  # closed meanwhile
            key = status[2], status[1]  # st_dev, st_ino: by name takes longer
            if key in opened:
                continue
            if key in names or _is_named(key, status, str(fd), folder, names):
                opened[key] = status
    finally:
        os.close(folder)
    return opened


def _is_named(key: Key, status: os.stat_result, name: str, folder: int, names: MutableMapping[Key, str]) -> bool:
    """Return whether an open file is one of ours, and enter its name."""
    if stat.S_ISREG(status.st_mode):
        with contextlib.suppress(FileNotFoundError):
            found = re.match(_FILE, os.fsencode(os.readlink(name, dir_fd=folder)))
            if found:
                names[key] = found[0].decode()
    return key in names


def named_files(pids: Collection[int], names: MutableMapping[Key, str]) -> dict[Key, os.stat_result]:
    """Return the files in /dev/shm that these processes have made and that are not in `names`; enters them there.

    Nobody has them open: messages that are under way by name, and what the manager has not removed yet.
    """
    found: dict[Key, os.stat_result] = {}
    for folder in glob("/dev/shm/nbmp-*/"):
        with contextlib.suppress(OSError), os.scandir(folder) as entries:  # another user's, or gone meanwhile
            status = os.stat(folder)
            if status.st_mode & 0o077:  # not a session's: anybody may make a folder of such a name
                continue
            device = status.st_dev
            for entry in entries:
                creator, key = entry.name.partition("-")[0], (device, entry.inode())
                if key not in names and creator.isdecimal() and int(creator) in pids:
                    found[key] = entry.stat(follow_symlinks=False)
                    names[key] = entry.path
    return found


def locked_files() -> set[Key] | None:
    """Return the files that anybody has locked, whose locking process still lives; None where that is not told."""
    try:
        with open("/proc/locks", "rb") as locks:
            content = locks.read()
    except OSError:
        return None
    return {(_device(device), int(inode)) for device, inode in _LOCK.findall(content)}


def descendants(pid: int) -> list[int]:
    """Return the children of a process, theirs and so on, in no order; one that starts or ends now may be missed.

    Asked of each process; looking through all processes of the machine, as psutil does, takes 20 times as long. But
    not every kernel tells.
    """
    if not os.path.exists(f"/proc/{pid}/task/{pid}/children"):
        return [child.pid for child in psutil.Process(pid).children(recursive=True)]
    found: list[int] = []
    waiting = [pid]
    while waiting:
        children = _children(waiting.pop())
        found += children
        waiting += children
    return found


def _children(pid: int) -> list[int]:
    children: list[int] = []
    with contextlib.suppress(OSError):  # it ends, or one of its threads
        for thread in os.listdir(f"/proc/{pid}/task"):
            with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{thread}/children") as file:
                children += map(int, file.read().split())
    return children


def file_system_room(path: str) -> tuple[int, int] | None:
    """Return the bytes that a file system has in all, and those in use; None when it is not there or has no limit."""
    if not hasattr(os, "statvfs"):
        return None
    try:
        status = os.statvfs(path)
    except OSError:
        return None
    block = status.f_frsize
    return (status.f_blocks * block, (status.f_blocks - status.f_bavail) * block) if status.f_blocks else None
