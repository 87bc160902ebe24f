"""Kernels for the tests of the notebook edge."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.notebook.kernels import Kernel

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def shared_kernel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kernel]:
    """One kernel with the extension loaded, for all tests of a module."""
    kernel = start(tmp_path_factory.mktemp("notebook"))
    try:
        kernel.run("%load_ext nbmp")
        yield kernel
    finally:
        kernel.close()
        assert not kernel.left_behind()


@pytest.fixture
def kernel(shared_kernel: Kernel) -> Kernel:
    """The module's kernel. Tests use names of their own and leave no ranks behind."""
    return shared_kernel


@pytest.fixture
def fresh_kernel(tmp_path: Path) -> Iterator[Kernel]:
    """A kernel for this test alone, nothing loaded."""
    kernel = start(tmp_path)
    try:
        yield kernel
    finally:
        kernel.close()
        assert not kernel.left_behind()


@pytest.fixture(params=["fork", "forkserver", "spawn"])
def method(request: pytest.FixtureRequest) -> str:
    """Return each start method in turn."""
    return str(request.param)


def start(folder: Path) -> Kernel:
    """Start a kernel in `folder`."""
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")]))
    # ipykernel leaves descriptors 1 and 2 alone while pytest's variable is set; no user's kernel has it
    env = {name: value for name, value in os.environ.items() if name != "PYTEST_CURRENT_TEST"}
    return Kernel(str(folder), {**env, "PYTHONPATH": path})
