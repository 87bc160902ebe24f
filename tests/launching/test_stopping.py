"""How ranks are ended after a failure: stages, signals, bounds."""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest

import nbmp
from tests import scripts
from tests.launching import functions
from tests.waiting import PATIENCE, content, is_running, none_runs, tell, until


def fail_when_others_are_ready(rank: int, folder: str, ignoring: bool) -> None:
    """Rank 0 fails once rank 1 stays."""
    if rank == 0:
        functions.wait_for(rank, f"{folder}/pid1")
        raise ValueError("rank 0 failed")
    (functions.stay_whatever_is_asked if ignoring else functions.stay)(rank, folder)


def tidy_up_on_term(rank: int, folder: str) -> None:
    if rank == 0:
        functions.wait_for(rank, f"{folder}/pid1")
        raise ValueError("rank 0 failed")

    def tidy(*_: object) -> NoReturn:
        tell(f"{folder}/tidy", "done")
        raise SystemExit(0)

    signal.signal(signal.SIGTERM, tidy)
    functions.stay(rank, folder)


def end_soon_after_the_failure(rank: int, folder: str) -> str:
    if rank == 0:
        raise ValueError("rank 0 failed")
    functions.wait_for(rank, f"{folder}/go")
    return "ended by itself"


def exit_codes(context: nbmp.ProcessContext) -> list[int | None]:
    return [process.exitcode for process in context.processes]


def test_others_get_sigterm_after_a_failure(method: str, tmp_path: Path) -> None:
    context = functions.begin(fail_when_others_are_ready, (str(tmp_path), False), 2, method)
    begun = time.monotonic()
    with pytest.raises(nbmp.ProcessRaisedException, match="rank 0 failed") as raised:
        context.join()
    assert time.monotonic() - begun < 20
    assert exit_codes(context) == [1, -signal.SIGTERM]
    assert "rank" in raised.value.aftermath or "1 ended" in raised.value.aftermath
    assert "SIGTERM" in raised.value.aftermath


def fail_when_another_is_done(rank: int, folder: str) -> None:
    if rank == 1:
        functions.stay(rank, folder)
    if rank == 2:
        functions.wait_for(rank, f"{folder}/pid1")
        functions.wait_for(rank, f"{folder}/pid3")
        raise ValueError("rank 2 failed")
    if rank == 3:
        signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
        functions.stay(rank, folder)


def test_only_ranks_that_did_not_end_by_themselves_are_called_stopped(method: str, tmp_path: Path) -> None:
    context = functions.begin(fail_when_another_is_done, (str(tmp_path),), 4, method)
    assert until(lambda: context.ranks[0].ended and context.ranks[2].ended)
    with pytest.raises(nbmp.ProcessRaisedException, match="rank 2 failed") as raised:
        context.join()
    assert [record.state for record in context.ranks] == ["done", "stopped", "raised", "done"]
    told = raised.value.aftermath
    assert re.fullmatch(r"The other .* stopped: ranks 0 and 3 had finished, rank 1 ended \S+ s after SIGTERM\.", told)


def test_rank_that_ignores_sigterm_gets_sigkill_after_the_grace_period(method: str, tmp_path: Path) -> None:
    context = functions.begin(fail_when_others_are_ready, (str(tmp_path), True), 2, method)
    assert until(lambda: context.ranks[0].ended)
    begun = time.monotonic()
    with pytest.raises(nbmp.ProcessRaisedException) as raised:
        context.join(grace_period=0.5)
    assert 0.9 < time.monotonic() - begun < 10  # half a second to end by itself, another after SIGTERM
    assert exit_codes(context) == [1, -signal.SIGKILL]
    assert "1 did not end on SIGTERM and got SIGKILL" in raised.value.aftermath


def test_grace_period_of_0_kills_back_to_back(method: str, tmp_path: Path) -> None:
    context = functions.begin(fail_when_others_are_ready, (str(tmp_path), True), 2, method)
    assert until(lambda: context.ranks[0].ended)
    begun = time.monotonic()
    with pytest.raises(nbmp.ProcessRaisedException):
        context.join(grace_period=0)
    assert time.monotonic() - begun < 5
    assert exit_codes(context) == [1, -signal.SIGKILL]


def test_rank_may_end_by_itself_within_the_grace_period(method: str, tmp_path: Path) -> None:
    context = functions.begin(end_soon_after_the_failure, (str(tmp_path),), 2, method)
    assert until(lambda: context.ranks[0].ended)
    tell(tmp_path / "go", "now")
    with pytest.raises(nbmp.ProcessRaisedException):
        context.join(grace_period=20)
    assert exit_codes(context) == [1, 0]
    assert context.results == [None, "ended by itself"]


def test_rank_can_tidy_up_on_sigterm(method: str, tmp_path: Path) -> None:
    context = functions.begin(tidy_up_on_term, (str(tmp_path),), 2, method)
    with pytest.raises(nbmp.ProcessRaisedException) as raised:
        context.join()
    assert content(tmp_path / "tidy") == "done"
    assert exit_codes(context) == [1, 0]
    assert [failure.rank for failure in raised.value.failures] == [0]


def test_timeout_does_not_bound_the_stopping(method: str, tmp_path: Path) -> None:
    context = functions.begin(fail_when_others_are_ready, (str(tmp_path), True), 2, method)
    assert until(lambda: context.ranks[0].ended)
    with pytest.raises(nbmp.ProcessRaisedException):
        context.join(timeout=0, grace_period=0.2)
    assert none_runs(pid for pid in context.pids() if pid)


def stop_itself(rank: int, folder: str) -> None:
    tell(f"{folder}/pid{rank}", os.getpid())
    os.kill(os.getpid(), signal.SIGSTOP)


def test_rank_halted_by_sigstop_can_be_stopped(method: str, tmp_path: Path) -> None:
    context = functions.begin(stop_itself, (str(tmp_path),), 1, method)
    content(tmp_path / "pid0")
    begun = time.monotonic()
    context.stop(0.3)
    assert time.monotonic() - begun < 5
    assert context.ranks[0].state == "stopped"


def stay_with_children(rank: int, folder: str) -> None:
    child = os.fork()
    functions.stay_whatever_is_asked(100 if child == 0 else rank, folder)


def test_children_of_a_rank_are_stopped_with_it(method: str, tmp_path: Path) -> None:
    context = functions.begin(stay_with_children, (str(tmp_path),), 1, method)
    grandchild = int(content(tmp_path / "pid100"))
    content(tmp_path / "pid0")
    assert is_running(grandchild)
    context.stop(0.1)
    assert until(lambda: not is_running(grandchild), 5)


class HangsOnArrival:
    """Hangs when it is unpickled, until there is a file `go`."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        return arrive, (self.folder,)


def arrive(folder: str) -> str:
    tell(f"{folder}/arrives", "now")
    assert until(lambda: Path(folder, "go").exists(), 10 * PATIENCE)
    return "arrived"


def return_what_hangs(rank: int, folder: str) -> HangsOnArrival | None:
    if rank == 0:
        return HangsOnArrival(folder)
    functions.stay(rank, folder)
    return None


def test_result_that_hangs_when_unpickled_is_not_taken_for_a_rank_that_cannot_be_killed(
    method: str, tmp_path: Path
) -> None:
    context = functions.begin(return_what_hangs, (str(tmp_path),), 2, method)
    content(tmp_path / "arrives")
    content(tmp_path / "pid1")
    assert until(lambda: context.ranks[0].has_gone)
    context.stop(20)
    told = r"rank 1 ended \S+ s after SIGTERM, the result of rank 0 is still being unpickled by this process"
    assert re.fullmatch(told, context.aftermath)
    assert not context.finished.is_set()
    assert none_runs(pid for pid in context.pids() if pid)
    tell(tmp_path / "go", "now")
    assert context.finished.wait(60)
    assert context.results == ["arrived", None]
    assert [record.state for record in context.ranks] == ["done", "stopped"]


def test_process_ends_though_a_result_hangs_when_unpickled(tmp_path: Path) -> None:
    source = """
        import sys, nbmp
        from pathlib import Path
        from tests.launching.test_stopping import return_what_hangs
        from tests.waiting import content
        nbmp.start_processes(return_what_hangs, (sys.argv[1],), 1, join=False, daemon=True)
        content(Path(sys.argv[1]) / "arrives")
    """
    assert scripts.output(tmp_path, source, str(tmp_path)) == ""
