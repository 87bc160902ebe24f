"""What sessions of named shared memory have left in /dev/shm that were killed, their manager too.

Whoever makes the first named segment of a new session sweeps it away. Until then it takes memory, and with the sharing
strategy `file_descriptor` nobody makes one: so it can be looked for, and removed, at any time.
"""

import contextlib
import os
import stat
from typing import NamedTuple

from nbmp import platforms
from nbmp.errors import UnsupportedPlatformError
from nbmp.memory import manager
from nbmp.memory.descriptors import made

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC


class Leftover(NamedTuple):
    """The folder of a session that is over and has nobody to remove it."""

    name: str
    """In /dev/shm."""
    bytes: int
    """The memory that its files take."""


def leftovers() -> list[Leftover]:
    """Return what is left of this user's dead sessions; nothing where there is no /dev/shm."""
    try:
        root = platforms.shared_memory_folder()
        names = sorted(os.listdir(root))
    except (UnsupportedPlatformError, OSError):
        return []
    found = []
    for name in names:
        if name.startswith(f"{manager.PREFIX}{os.geteuid()}-"):
            with contextlib.suppress(OSError):  # somebody removes it meanwhile
                if _is_left(f"{root}/{name}"):
                    found.append(Leftover(name, _bytes_in(f"{root}/{name}")))
    return found


def remove_leftovers() -> list[Leftover]:
    """Remove them; return those that are gone now. What anybody alive uses is not touched."""
    before = leftovers()
    if before:
        manager.remove_leftovers(platforms.shared_memory_folder())
    after = {leftover.name for leftover in leftovers()}
    return [leftover for leftover in before if leftover.name not in after]


def _is_left(path: str) -> bool:
    """Return whether a session is over and its manager, which would remove it within a moment, is gone as well."""
    folder = made(os.open, path, _FOLDER)
    if os.fstat(folder.fileno()).st_uid != os.geteuid() or not manager.is_over(folder.fileno()):
        return False
    with contextlib.suppress(FileNotFoundError):
        sign = made(os.open, f"{path}/{manager.SIGN}", _FILE)
        return not manager.is_locked(sign.fileno(), 0, 1)
    return True


def _bytes_in(path: str) -> int:
    files = {}
    with os.scandir(path) as entries:
        for entry in entries:
            status = entry.stat(follow_symlinks=False)
            if stat.S_ISREG(status.st_mode):
                files[status.st_ino] = status.st_blocks * 512  # one with a second name counts once
    return sum(files.values())
