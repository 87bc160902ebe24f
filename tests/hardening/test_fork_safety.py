"""Forks from a process whose threads hold every kind of lock at that moment."""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy  # noqa: F401 - its library has threads
import pytest
import threadpoolctl

import nbmp
from nbmp.launching import quiet
from tests.hardening import busy
from tests.notebook.kernels import Kernel
from tests.waiting import until

FORKS = int(os.environ.get("NBMP_FORKS", "20"))
"""In all; 500 take a few minutes."""
AT_ONCE = 5
SECONDS = 60.0


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """A module that a thread is importing, until the event is set."""
    go_on = threading.Event()
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "half_there.py").write_text("first = 1\nimport sys\nsys.modules['go_on'].wait()\nsecond = 2\n")
    monkeypatch.setitem(sys.modules, "go_on", go_on)
    thread = threading.Thread(target=__import__, args=("half_there",))
    thread.start()
    assert until(lambda: hasattr(sys.modules.get("half_there"), "first"))
    yield go_on
    go_on.set()
    thread.join()
    sys.modules.pop("half_there", None)


def import_half(rank: int) -> tuple[int, bool]:
    import half_there  # type: ignore[import-not-found]

    return half_there.first, hasattr(half_there, "second")


def test_module_that_a_thread_is_importing_and_sleeps_is_there_as_far_as_it_was(module: threading.Event) -> None:
    """It may wait for this launch: a module that uses a pool while it is imported does."""
    assert nbmp.launch(import_half, nprocs=2, start_method="fork", timeout=SECONDS) == [(1, False)] * 2


def test_import_that_goes_on_is_waited_for(module: threading.Event, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quiet, "ASLEEP_SECONDS", 60.0)
    monkeypatch.setattr(quiet, "IMPORT_SECONDS", 60.0)
    threading.Timer(0.3, module.set).start()
    assert nbmp.launch(import_half, nprocs=2, timeout=SECONDS) == [(1, True)] * 2


def test_import_that_does_not_end_moves_the_default_away_and_is_named(
    module: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quiet, "ASLEEP_SECONDS", 60.0)
    monkeypatch.setattr(quiet, "IMPORT_SECONDS", 0.1)
    method, reason = nbmp.default_start_method()
    assert method == "forkserver"
    assert "is importing half_there" in reason


def test_computation_that_does_not_end_moves_the_default_away_and_refuses_a_fork(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(quiet, "wait_for_computations", lambda seconds: False)
    monkeypatch.setattr(quiet, "others_may_compute", lambda: True)
    method, reason = nbmp.default_start_method()
    assert method == "forkserver"
    assert "computes in threads of a library" in reason
    with pytest.raises(nbmp.StartError, match="another thread computes"):
        nbmp.launch(abs, nprocs=1, start_method="fork")


def log(rank: int, number: int) -> int:
    logging.getLogger("tests.held").warning("from a rank")
    return rank


def test_handler_that_a_thread_is_writing_with_is_waited_for(tmp_path: Path) -> None:
    """What it holds is the lock of the file's buffer, in the system call; here the handler's stands for it."""
    handler = logging.FileHandler(tmp_path / "log")
    logger = logging.getLogger("tests.held")
    logger.addHandler(handler)
    logger.propagate = False
    held, let_go = threading.Event(), []

    def hold() -> None:
        assert handler.lock is not None
        with handler.lock:
            held.set()
            time.sleep(0.2)
            let_go.append(time.monotonic())

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    with quiet.Quiet():
        assert let_go
    thread.join()
    assert nbmp.launch(log, (1,), nprocs=2, start_method="fork", timeout=SECONDS) == [0, 1]
    logger.removeHandler(handler)
    handler.close()
    assert (tmp_path / "log").read_text().count("from a rank") == 2


def test_whatever_is_held_for_long_does_not_stop_a_launch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever holds it may wait for the launch."""
    monkeypatch.setattr(quiet, "LOCK_SECONDS", 0.05)
    with_lock = logging.NullHandler()
    with_lock.lock = threading.RLock()
    held, over = threading.Event(), threading.Event()

    def hold() -> None:
        assert with_lock.lock is not None
        with with_lock.lock:
            held.set()
            over.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    assert nbmp.launch(log, (1,), nprocs=2, start_method="fork", timeout=SECONDS) == [0, 1]
    over.set()
    thread.join()


def test_lock_of_a_library_that_is_held_for_long_is_taken_away_in_the_rank(monkeypatch: pytest.MonkeyPatch) -> None:
    """As matplotlib's is where it draws a large figure, or the machine is busy: ranks waited for it for ever."""
    pytest.importorskip("matplotlib.figure")
    from matplotlib.figure import Figure

    monkeypatch.setattr(quiet, "LOCK_SECONDS", 0.05)
    held, over = threading.Event(), threading.Event()

    def hold() -> None:
        with Figure._render_lock:  # type: ignore[attr-defined]
            held.set()
            over.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    try:
        assert nbmp.launch(busy.alive, (Path(), "matplotlib"), 2, start_method="fork", timeout=SECONDS) == [0, 1]
    finally:
        over.set()
        thread.join()


def test_nothing_is_held_after_a_fork() -> None:
    nbmp.launch(log, (1,), nprocs=2, start_method="fork", timeout=SECONDS)
    assert not any(thread.is_alive() for thread in [_tries_all()])


def test_two_forks_at_once_leave_libraries_the_threads_that_they_had() -> None:
    """Also where no launch sets their number, since a variable does; the second one to look would have found one."""
    second = threading.Thread(target=_be_quiet)
    idle, over = threading.Thread(target=lambda: over.wait()), threading.Event()
    idle.start()
    try:
        with threadpoolctl.threadpool_limits(2, "blas"):
            with quiet.Quiet():
                second.start()
                assert until(lambda: _is_in(second, "limited") or _is_in(second, "_hold_back_imports"))
            second.join()
            blas = threadpoolctl.ThreadpoolController().select(user_api="blas")
            assert {pool.num_threads for pool in blas.lib_controllers} == {2}
    finally:
        over.set()
        idle.join()


def _be_quiet() -> None:
    with quiet.Quiet():
        pass


def _is_in(thread: threading.Thread, function: str) -> bool:
    frame = sys._current_frames().get(thread.ident or 0)
    return frame is not None and frame.f_code.co_name == function


def _tries_all() -> threading.Thread:
    """Return a thread that takes and gives back every lock that a fork takes; alive if it cannot."""
    thread = threading.Thread(target=_be_quiet, daemon=True)
    thread.start()
    thread.join(20)
    return thread


CELL = """
import sys; sys.path.insert(0, {root!r})
from pathlib import Path
import matplotlib.pyplot as plt; plt.plot([1, 2]); plt.close()
import nbmp
from tests.hardening import busy
done = []
with busy.busy(Path({folder!r})) as rounds:
    while len(done) < {forks}:
        done += nbmp.launch(busy.alive, (Path({folder!r}),), {at_once}, start_method="fork", timeout={seconds})
print("forks", len(done), min(rounds.values()) > 0)
"""


@pytest.mark.slow
@pytest.mark.may_keep("descriptors")  # jupyter_client keeps its event loop here
@pytest.mark.timeout(120 + 4 * FORKS)
def test_forks_of_a_busy_kernel_do_not_hang(tmp_path: Path) -> None:
    from tests import scripts

    kernel = Kernel(str(tmp_path), scripts.environment(PYDEVD_DISABLE_FILE_VALIDATION="1"))
    try:
        kernel.is_attended = False
        cell = kernel.start(
            CELL.format(root=str(scripts.ROOT), folder=str(tmp_path), forks=FORKS, at_once=AT_ONCE, seconds=SECONDS)
        )
        kernel.until(lambda: bool(cell.ended), "all forks have ended", 100 + 4 * FORKS)
        assert cell.status == "ok", cell.error
        assert f"forks {FORKS} True" in cell.text()
    finally:
        kernel.close()
    assert not kernel.left_behind()
