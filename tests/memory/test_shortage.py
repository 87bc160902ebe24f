"""Short of room in /dev/shm or of descriptors, under `file_system`: an error with figures, and it goes on."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests import scripts
from tests.strategies import ONLY_BY_NAME

pytestmark = ONLY_BY_NAME

SMALL = "size=64m"
SMALL_MANY_FILES = "size=64m,nr_inodes=60"


def in_small_shm(folder: Path, source: str, options: str = SMALL) -> str:
    """Run a script where /dev/shm is as in a container, in a mount namespace of its own; return what it printed."""
    if shutil.which("unshare") is None:
        pytest.skip("there is no unshare here")
    mount = f'mount -t tmpfs -o {options} tmpfs /dev/shm && exec "$0" "$@"'
    before = ["unshare", "-m", "bash", "-c", mount]
    probe = subprocess.run([*before, "true"], capture_output=True)
    if probe.returncode:
        pytest.skip("only root may mount")
    done = scripts.run(folder, "import nbmp\nnbmp.set_sharing_strategy('file_system')\n" + source, before=before)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_array_that_does_not_fit_is_refused_with_figures(tmp_path: Path) -> None:
    told = in_small_shm(
        tmp_path,
        """
import numpy as np
first = nbmp.ones(5_000_000)
try:
    nbmp.zeros(5_000_000)
except nbmp.SharedMemoryError as error:
    print(error)
del first
print(nbmp.ones(5_000_000).sum())
""",
    )
    error, total = told.splitlines()
    for part in (
        "40000000 bytes (40.0 MB)",
        "/dev/shm has only 27.1 MB of its 67.1 MB",
        "--shm-size",
        "file_descriptor",
    ):
        assert part in error
    assert total == "5000000.0"


def test_full_one_refuses_every_kind_of_message_and_the_queue_goes_on(tmp_path: Path) -> None:
    told = in_small_shm(
        tmp_path,
        """
import numpy as np
q = nbmp.Queue()
kept = []
try:
    while True:
        kept.append(nbmp.ones(100_000))
except nbmp.SharedMemoryError:
    print(len(kept))
refused = 0
for thing in (np.ones(200_000), b"x" * 1_000_000, [np.zeros(100_000)] * 3):
    try:
        q.put(thing)
    except nbmp.SharedMemoryError:
        refused += 1
q.put((1, kept[0], np.ones(10)))
number, shared, small = q.get(timeout=5)
shared[0] = 5
print(refused, number, kept[0][0], small.sum())
del kept, shared
for value in range(30):
    q.put(np.full(1_000_000, value))
    assert q.get(timeout=5)[-1] == value
print("goes on")
""",
    )
    assert told.splitlines() == ["83", "3 1 5.0 10.0", "goes on"]


def test_small_arrays_fill_it_without_a_signal(tmp_path: Path) -> None:
    told = in_small_shm(
        tmp_path,
        """
kept = []
try:
    while True:
        kept.append(nbmp.ones(4_000))
except nbmp.SharedMemoryError as error:
    print("refused", len(kept) > 1900, all(array.all() for array in kept))
""",
    )
    assert told == "refused True True\n"


def test_limit_of_files_in_dev_shm_is_told(tmp_path: Path) -> None:
    told = in_small_shm(
        tmp_path,
        """
import numpy as np
kept = []
try:
    while True:
        kept.append(nbmp.ones(10_000))
except nbmp.SharedMemoryError as error:
    print("room for 0 files" in str(error))
q = nbmp.Queue()
del kept[:10]
for _ in range(100):
    q.put((np.ones(10_000), kept[0]))
    q.get(timeout=5)
print("goes on")
""",
        SMALL_MANY_FILES,
    )
    assert told.splitlines() == ["True", "goes on"]


def test_many_arrays_with_few_descriptors(tmp_path: Path) -> None:
    """A mapped segment needs none from Python 3.13 on, and one before, as its error says."""
    told = scripts.output(
        tmp_path,
        """
        import resource, sys, numpy as np, nbmp
        nbmp.set_sharing_strategy("file_system")
        resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
        q = nbmp.Queue()
        small = [nbmp.full(100, index) for index in range(3000)]
        for array in small[::100]:
            q.put(array)
        print(sum(q.get(timeout=5)[0] for _ in range(30)) == sum(range(0, 3000, 100)))
        private = []
        for index in range(200):
            q.put(np.full(20_000, index))
            private.append(q.get(timeout=5))
        print(all((array == index).all() for index, array in enumerate(private)))
        big = []
        try:
            for index in range(300):
                big.append(nbmp.full(20_000, index))
        except OSError as error:
            print("Too many open files" in str(error), file=sys.stderr)
        print(len(big) if sys.version_info >= (3, 13) else len(big) < 64)
        count = len(big)
        del big[count // 2 :]
        del private[:]
        q.put(big[:5])
        arrived = q.get(timeout=5)
        print(all(np.shares_memory(here, there) for here, there in zip(arrived, big)))
        """,
    )
    many = "300" if sys.version_info >= (3, 13) else "True"
    assert told.splitlines() == ["True", "True", many, "True"]
