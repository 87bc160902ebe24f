"""Programs of a user who is not root: the kernel's limits of processes and descriptors bind them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import textwrap

import pytest

from tests import scripts


def run(source: str, *arguments: str, seconds: float = 100) -> subprocess.CompletedProcess[str]:
    """Run a program to its end, in the root folder."""
    path = os.pathsep.join([str(scripts.ROOT), sysconfig.get_path("purelib")])
    return subprocess.run(
        [*unprivileged_python(), "-B", "-c", textwrap.dedent(source), *arguments],
        cwd="/",
        env=scripts.environment(OPENBLAS_NUM_THREADS="1", PYTHONPATH=path),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=seconds,
    )


def output(source: str, *arguments: str) -> str:
    """Run a program that must end well and return what it printed."""
    done = run(source, *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


def unprivileged_python() -> list[str]:
    """Return the command of a Python that a limit of processes binds: not root's."""
    if os.getuid() != 0:
        return [sys.executable]
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        pytest.skip("setpriv is not here, and root is not bound by a limit of processes")
    nobody = [setpriv, "--reuid=65534", "--regid=65534", "--clear-groups"]
    for python in (sys.executable, f"/usr/bin/python3.{sys.version_info.minor}"):
        starts_itself = "import subprocess, sys; subprocess.run([sys.executable, '-c', ''])"
        probe = [*nobody, python, "-c", starts_itself]
        if os.path.exists(python) and subprocess.run(probe, capture_output=True).returncode == 0:
            return [*nobody, python]
    pytest.skip("no Python here that nobody may execute")
