"""Launches and messages leave nothing behind and cost no memory; `tests/benchmarks/bench_leaks.py` is the long form."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys

from tests import scripts

MOST_BLOCKS = 2_500  # of 5,060 launches and messages
MOST_KB = 1 << 10


def test_launches_and_messages_leave_nothing_behind() -> None:
    script = str(scripts.ROOT / "tests/benchmarks/bench_leaks.py")
    command = [sys.executable, "-B", script, "60", "5000"]
    if os.getuid() == 0 and shutil.which("unshare"):  # a /dev/shm of its own: others leave names there meanwhile
        command = ["unshare", "-m", "bash", "-c", 'mount -t tmpfs tmpfs /dev/shm && exec "$0" "$@"', *command]
    done = subprocess.run(command, env=scripts.environment(), capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert [line for line in lines if "left:" in line and "left: nothing" not in line] == []
    growth = re.search(r"in all: memory ([+-]\d+) kB, blocks ([+-]\d+)", done.stdout)
    assert growth is not None
    assert int(growth[1]) <= MOST_KB, done.stdout
    assert int(growth[2]) <= MOST_BLOCKS, done.stdout
