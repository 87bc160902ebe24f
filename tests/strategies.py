"""What tests of both sharing strategies need to know of them."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

ONLY_BY_DESCRIPTOR = pytest.mark.parametrize("strategy", ["file_descriptor"], indirect=True)
ONLY_BY_NAME = pytest.mark.parametrize("strategy", ["file_system"], indirect=True)


def held() -> tuple[int, int]:
    """Return how many descriptors and how many mappings of segments, of either kind, this process has."""
    links = [os.readlink(path) for path in Path("/proc/self/fd").iterdir() if path.is_symlink()]
    maps = Path("/proc/self/maps").read_text().splitlines()
    return sum(map(_is_segment, links)), sum(map(_is_segment, maps))


def _is_segment(shown: str) -> bool:
    """Return whether a link or a line leads to one. Its name begins with the pid of the process that made it."""
    return bool(re.search(r"/memfd:nbmp-\d+-|/dev/shm/nbmp-\d+-\w+/\d+-", shown))
