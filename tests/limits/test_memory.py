"""Short of memory, of address space, of mappings, of /dev/shm: said in numbers before it is taken, nothing is lost."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import nbmp
from nbmp.memory import room
from tests import scripts


def test_put_of_more_than_is_left_says_the_figures_and_the_queue_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    q = nbmp.Queue()
    monkeypatch.setattr("nbmp.platforms.available_memory", lambda: 10**7)
    with pytest.raises(nbmp.SharedMemoryError, match=r"\d{8} bytes \(.*MB\).*only 10.0 MB are left"):
        q.put(np.zeros(5 * 10**6))
    q.put(np.zeros(10**6))
    assert q.get(timeout=5).size == 10**6
    assert q.qsize() == 0


def test_many_small_segments_are_counted_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nbmp.platforms.available_memory", lambda: 10**5)
    kept = []
    with pytest.raises(nbmp.SharedMemoryError, match=r"only 100.0 kB are left"):
        for _ in range(1000):
            kept.append(nbmp.zeros(8000))
    assert len(kept) < 500


def test_received_arrays_are_copied_out_before_the_mappings_run_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "LIVE_COUNT", 0)
    q = nbmp.Queue()
    q.put((np.full(50_000, 3), b"x" * 100_000))
    array, text = q.get(timeout=5)
    assert (array == 3).all()
    assert array.flags.writeable
    assert text == b"x" * 100_000
    array.flags.writeable = False
    q.put(array)
    assert not q.get(timeout=5).flags.writeable
    assert "memfd:nbmp " not in Path("/proc/self/maps").read_text()


ADDRESS_SPACE = """
    import resource
    import numpy as np
    import nbmp
    q = nbmp.Queue()
    q.put(np.full(25_000_000, 7.0))  # 200 MB
    q.put("next")
    nbmp.trim()
    size = int(open("/proc/self/statm").read().split()[0]) * 4096
    resource.setrlimit(resource.RLIMIT_AS, (size + (50 << 20), resource.RLIM_INFINITY))
    for attempt in (lambda: q.get(timeout=5), lambda: q.get(timeout=5), lambda: nbmp.zeros(25_000_000)):
        try:
            attempt()
        except MemoryError as error:
            assert " bytes " in str(error), error
        else:
            raise AssertionError("there was room")
    q.put(np.zeros(10_000))
    resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    assert (q.get(timeout=5) == 7).all()
    assert q.get(timeout=5) == "next"
    assert q.get(timeout=5).size == 10_000
    print("good")
"""


def test_array_that_the_address_space_has_no_room_for_is_still_there_afterwards(tmp_path: Path) -> None:
    assert scripts.output(tmp_path, ADDRESS_SPACE) == "good\n"


SMALL_SHM = """
    import os
    import numpy as np
    import nbmp
    def total(rank, array): array[0] += 1; return float(array.sum())
    before = set(os.listdir("/dev/shm"))
    shared = nbmp.ones(25_000_000)
    assert nbmp.launch(total, (shared,), start_method="forkserver") == [25_000_001]
    q = nbmp.Queue()
    q.put(np.full(25_000_000, 7.0))
    assert (q.get(timeout=5) == 7).all()
    assert set(os.listdir("/dev/shm")) == before
    print("good")
"""


@pytest.mark.parametrize("filled", [False, True])
def test_size_of_dev_shm_does_not_matter(filled: bool, tmp_path: Path) -> None:
    fill = "head -c 70000000 /dev/zero > /dev/shm/filler 2>/dev/null;" if filled else ""
    mount = f'mount -t tmpfs -o size=64m tmpfs /dev/shm && {{ {fill} exec "$0" "$@"; }}'
    if os.getuid() != 0 or shutil.which("unshare") is None:
        pytest.skip("only root may mount another /dev/shm")
    done = scripts.run(tmp_path, SMALL_SHM, before=["unshare", "-m", "bash", "-c", mount])
    assert (done.returncode, done.stdout) == (0, "good\n"), done.stderr


@pytest.fixture
def group() -> Iterator[Path]:
    """A control group of 300 MB."""
    root = Path("/sys/fs/cgroup/memory")
    if not (root / "memory.limit_in_bytes").exists():
        root = Path("/sys/fs/cgroup")
    folder = root / f"nbmp-test-{os.getpid()}"
    try:
        folder.mkdir()
        limit = folder / "memory.limit_in_bytes"
        (limit if limit.exists() else folder / "memory.max").write_text(str(300 << 20))
    except OSError as error:
        if folder.exists():
            folder.rmdir()
        pytest.skip(f"no control group can be made here: {error}")
    yield folder
    folder.rmdir()


IN_GROUP = """
    import sys
    import numpy as np
    import nbmp
    q = nbmp.Queue()
    private = np.empty(50_000_000)  # 400 MB, none of it touched
    for attempt in (lambda: nbmp.zeros(50_000_000), lambda: q.put(private)):
        try:
            attempt()
        except nbmp.SharedMemoryError as error:
            assert "control group" in str(error) and "MB are left" in str(error), error
        else:
            raise AssertionError("more than the group may have")
    q.put(np.full(5_000_000, 7.0))
    assert (q.get(timeout=5) == 7).all()
    print("good")
"""


def test_limit_of_the_control_group_is_told_before_it_kills(group: Path, tmp_path: Path) -> None:
    join = f'echo $$ > {group}/cgroup.procs && exec "$0" "$@"'
    done = scripts.run(tmp_path, IN_GROUP, before=["bash", "-c", join])
    assert (done.returncode, done.stdout) == (0, "good\n"), done.stderr
