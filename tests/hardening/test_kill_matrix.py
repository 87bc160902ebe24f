"""The kill matrix: SIGKILL to the kernel, a rank, the manager, the fork server at random moments of each phase.

Afterwards ranks are gone within two seconds, `/dev/shm`, temporary files and descriptors are as before, and whoever
survives goes on, or fails with an error that says what was killed.

NBMP_KILL_MOMENTS is how many moments of each phase (3; a kernel, which takes seconds to start, is killed at a third of
them), NBMP_KILL_SEED repeats a run: it stands on a failure.
"""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import nbmp
from nbmp.launching.methods import forkserver
from tests import scripts
from tests.hardening.lives import JOIN_SECONDS, PHASES, RANKS, TRANSFER_SECONDS, Life
from tests.launching import functions
from tests.memory.test_manager import managers, the_manager
from tests.notebook.conftest import start
from tests.waiting import content, is_running, until

MOMENTS = int(os.environ.get("NBMP_KILL_MOMENTS", "3"))
SEED = int(os.environ.get("NBMP_KILL_SEED") or random.SystemRandom().randrange(1 << 32))

SPANS = {"launch": 0.1, "transfer": TRANSFER_SECONDS, "join": JOIN_SECONDS, "exit": 0.05}
"""Seconds in which the moments of a phase are."""
START_SPANS = {"fork": 0.1, "forkserver": 0.3, "spawn": 2.0}
"""Of the launch, for each start method."""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Be in a folder of the test's own, in which a new fork server is started, and have another for temporary files."""
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    monkeypatch.chdir(tmp_path)
    forkserver.stop_server()
    yield tmp_path
    forkserver.stop_server()
    nbmp.set_sharing_strategy("file_descriptor")
    assert not list(temporary.iterdir())


class Strike(threading.Thread):
    """Kills somebody, `delay` seconds after a phase has begun."""

    def __init__(self, phase: str, delay: float, victim: Callable[[], int | None]) -> None:
        super().__init__(name="strike")
        self.pid: int | None = None
        self.over = threading.Event()
        self._phase, self._delay, self._victim = phase, delay, victim

    def run(self) -> None:
        until(lambda: os.path.exists(self._phase) or self.over.is_set())
        time.sleep(self._delay)
        give_up = time.monotonic() + 1  # all that could be killed may have come to its end
        while self.pid is None and not self.over.is_set() and time.monotonic() < give_up:
            self.pid = self._victim()
        if self.pid is not None:
            try:
                os.kill(self.pid, signal.SIGKILL)
            except ProcessLookupError:
                self.pid = None  # it was quicker


def children(pid: int) -> list[int]:
    found = [path.read_text().split() for path in Path(f"/proc/{pid}/task").glob("*/children")]
    return [int(child) for line in found for child in line]


def a_rank(method: str, earlier: set[int], chance: random.Random) -> int | None:
    """Return a rank that runs, as soon as there is one."""
    parent = forkserver.server_pid() if method == "forkserver" else os.getpid()
    try:
        ranks = sorted(set(children(parent or os.getpid())) - earlier - {forkserver.server_pid()})
    except OSError:
        return None
    return chance.choice(ranks) if ranks else None


def once(victim: str, phase: str, chance: random.Random) -> str:
    """Kill somebody once; return what came of it, when all is well."""
    methods = {"rank": ["fork", "forkserver", "fork", "forkserver", "spawn"], "manager": ["fork", "forkserver"]}
    method = chance.choice(methods.get(victim, ["forkserver"]))
    by_name = victim == "manager" or chance.random() < 0.5
    nbmp.set_sharing_strategy("file_system" if by_name else "file_descriptor")
    for name in PHASES:
        Path(name).unlink(missing_ok=True)
    if method == "forkserver":
        nbmp.launch(functions.pid, start_method="forkserver")
    life = Life(method)
    earlier = set(children(os.getpid()))
    manager_pid = the_manager() if victim == "manager" else None
    victims: dict[str, Callable[[], int | None]] = {
        "rank": lambda: a_rank(method, earlier, chance),
        "manager": lambda: manager_pid,
        "fork server": forkserver.server_pid,
    }
    delay = chance.uniform(0, START_SPANS[method] if phase == "launch" else SPANS[phase])
    strike = Strike(phase, delay, victims[victim])
    strike.start()
    try:
        came = judged(life, strike, victim, phase)
    except BaseException as error:
        error.add_note(f"{method}, {'file_system' if by_name else 'file_descriptor'}, after {delay:.4f} s")
        raise
    finally:
        strike.over.set()
        strike.join()
    assert strike.pid is None or until(lambda: not is_running(strike.pid or 0))
    own = {os.getpid(), forkserver.server_pid()}
    assert until(lambda: not set(scripts.family(Path.cwd())) - own, 2), "ranks are still there"
    assert nbmp.launch(functions.give, (5,), RANKS, start_method=method) == [5, 5]
    return came


def judged(life: Life, strike: Strike, victim: str, phase: str) -> str:
    results, failed = [], None
    try:
        results = life.lead()
    except (nbmp.ProcessExitedException, nbmp.StartError) as error:
        failed = error.with_traceback(None)  # its frames hold the queues, in a circle with the launch
    strike.join()
    if failed is None:
        assert [float(array.sum()) / array.size for array in results] == [0.0, 1.0]
        return "results"
    if isinstance(failed, nbmp.StartError):
        assert (victim, phase) == ("fork server", "launch"), failed
        assert "fork server" in str(failed)
        return "no start"
    assert victim == "rank", failed
    assert (failed.error_pid, failed.signal_name) == (strike.pid, "SIGKILL"), failed
    return "the rank is named"


@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize("victim", ["rank", "manager", "fork server"])
@pytest.mark.timeout(900)
def test_survivors_go_on_or_say_what_was_killed(victim: str, phase: str, folder: Path) -> None:
    came = [in_moment(number, victim, phase, once) for number in range(MOMENTS)]
    print(f"{victim} killed in {phase}: " + ", ".join(f"{came.count(kind)} {kind}" for kind in sorted(set(came))))


def in_moment(number: int, victim: str, phase: str, kill: Callable[[str, str, random.Random], str]) -> str:
    try:
        return kill(victim, phase, random.Random(f"{SEED} {victim} {phase} {number}"))
    except BaseException as error:
        error.add_note(f"NBMP_KILL_SEED={SEED}, moment {number} of {victim}, {phase}")
        raise


IN_KERNEL = """
import os, nbmp
from nbmp.memory.session import own_session
from tests.hardening.lives import Life
from tests.waiting import tell
nbmp.set_sharing_strategy({strategy!r})
life = Life({method!r}, stays={stays!r})
tell("session", own_session().name if {strategy!r} == "file_system" else "none")
{call}
"""


@pytest.mark.may_keep("descriptors")  # jupyter_client keeps an event loop in this process
@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.timeout(900)
def test_nothing_is_left_of_a_killed_kernel(
    phase: str, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    def kill_kernel(victim: str, phase: str, chance: random.Random) -> str:
        temporary = tmp_path_factory.mktemp("temporary")
        monkeypatch.setenv("TMPDIR", str(temporary))
        return kill_a_kernel(tmp_path_factory.mktemp("kernel"), temporary, phase, chance)

    for number in range(max(1, MOMENTS // 3 if MOMENTS < 20 else MOMENTS)):
        in_moment(number, "kernel", phase, kill_kernel)


def kill_a_kernel(folder: Path, temporary: Path, phase: str, chance: random.Random) -> str:
    method = chance.choice(["fork", "forkserver", "fork", "forkserver", "spawn"])
    strategy = chance.choice(["file_system", "file_descriptor"])
    delay = chance.uniform(0, START_SPANS[method] if phase == "launch" else 0.3 if phase == "exit" else SPANS[phase])
    kernel = start(folder)
    try:
        call = "life.begin()" if phase == "exit" else "life.lead()"
        cell = kernel.start(
            IN_KERNEL.format(strategy=strategy, method=method, stays=phase in ("join", "exit"), call=call)
        )
        session = content(folder / "session", 60)
        if phase == "exit":
            kernel.until(lambda: bool(cell.ended), "ranks run")
            kernel.shut_down()
        else:
            content(folder / phase, 60)
        time.sleep(delay)
        family = scripts.family(folder)
        try:
            os.kill(kernel.pid, signal.SIGKILL)
        except ProcessLookupError:
            assert phase == "exit"
        assert scripts.nobody_is_left(folder), f"{method}, {strategy}, after {delay:.4f} s: {family} are still there"
    finally:
        kernel.close()
    assert not kernel.left_behind()
    if strategy == "file_system":  # the other one has no use for a session, and so no manager that ends it
        assert until(lambda: not (Path("/dev/shm") / session).exists()), "a session is left in /dev/shm"
        assert until(lambda: not managers(session))
    makers = set(map(str, family))
    assert not [path for path in Path("/dev/shm").glob("nbmp*/*") if path.name.split("-")[0] in makers]
    assert not list(temporary.iterdir())
    return "gone"
