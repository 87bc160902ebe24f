"""The kernel of the notebook's tests, one for all cells of a table; what rubbish comes with, and may not leave."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import pytest

from nbmp.pickling.quick import snapshot
from tests.notebook.conftest import kernel, shared_kernel

if TYPE_CHECKING:
    from tests.hardening.rubbish import Holding

__all__ = ["kernel", "shared_kernel"]


@pytest.fixture(scope="module")
def files() -> Iterator[list[int]]:
    """Descriptors of all kinds, none of which a message would have."""
    from tests.hardening.rubbish import opened_files

    opened = opened_files()
    yield opened
    for fd in opened:
        os.close(fd)


@pytest.fixture
def holding(files: list[int]) -> Iterator[Holding]:
    """Nothing may be held that was not held before."""
    from tests.hardening.rubbish import Holding

    snapshot(np.zeros(3))
    held = Holding()
    yield held
    held.check()
