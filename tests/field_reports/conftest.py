"""Real kernels with the names that the reports use."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import nbmp
from tests.notebook.conftest import start
from tests.notebook.kernels import Kernel

MUST_RAISE = """
def must_raise(fn, *texts, within=5, exc=Exception):
    begun = time.time()
    try:
        out = fn()
    except exc as e:
        assert not isinstance(e, mp.TimeoutError), 'hang'
        assert time.time() - begun < within, f'too late: {time.time() - begun:.1f} s'
        for text in texts:
            assert text in f'{type(e).__name__}: {e} {e.__cause__!r}', (text, e)
        return e
    raise AssertionError(f'nothing raised, got {out!r}')
"""

HELPERS = (
    """
import os, sys, time, signal, threading, numpy as np
import nbmp as mp
def alive(pid):
    try:
        return open(f'/proc/{pid}/stat').read().rsplit(')', 1)[1].split()[0] != 'Z'
    except OSError:
        return False
def kids():
    found = []
    for task in os.listdir('/proc/self/task'):
        found += [int(pid) for pid in open(f'/proc/self/task/{task}/children').read().split()]
    return [pid for pid in found if alive(pid)]
def gone(pids, within):
    end = time.time() + within
    while any(map(alive, pids)) and time.time() < end:
        time.sleep(0.02)
    return not any(map(alive, pids))
"""
    + MUST_RAISE
)


@pytest.fixture(scope="module")
def shared_kernel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kernel]:
    """One kernel for the tests of a module; nothing but `import nbmp as mp` was done."""
    yield from helped(tmp_path_factory.mktemp("reports"))


@pytest.fixture
def kernel(shared_kernel: Kernel, tmp_path: Path) -> Kernel:
    """The module's kernel, in a folder of the test's own. Tests leave no ranks behind."""
    shared_kernel.run(f"os.chdir({str(tmp_path)!r})")
    return shared_kernel


@pytest.fixture
def fresh_kernel(tmp_path: Path) -> Iterator[Kernel]:
    """A kernel for this test alone: it kills the kernel, or others would see what it has done to it."""
    yield from helped(tmp_path)


def helped(folder: Path) -> Iterator[Kernel]:
    """A kernel in which the helpers are defined."""
    kernel = start(folder)
    try:
        kernel.run(HELPERS)
        yield kernel
    finally:
        kernel.close()
        assert not kernel.left_behind()


@pytest.fixture(params=["fork", "forkserver", "spawn"])
def method(request: pytest.FixtureRequest) -> str:
    """Return each start method in turn."""
    return str(request.param)


@pytest.fixture(params=sorted(nbmp.get_all_sharing_strategies()))
def strategy(request: pytest.FixtureRequest) -> str:
    """Return each sharing strategy in turn: a script sets it."""
    return str(request.param)
