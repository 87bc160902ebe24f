"""The world a rank finds: variables, folder, path, arguments, as the launching process has them now."""

from __future__ import annotations

import logging
import os
import signal
import sys
from pathlib import Path

import pytest

import nbmp
from nbmp.launching.methods import forkserver
from tests.launching import functions
from tests.waiting import until

DISTRIBUTED = ("RANK", "LOCAL_RANK", "WORLD_SIZE")


def variables(rank: int, names: tuple[str, ...]) -> list[str | None]:
    return [os.environ.get(name) for name in names]


def variables_by_c(rank: int, name: str) -> str:
    """What a program that is started sees."""
    return os.popen(f"printf %s ${name}").read()


def test_rank_knows_its_number_and_how_many_there_are(method: str) -> None:
    results = nbmp.launch(variables, (DISTRIBUTED,), 3, start_method=method)
    assert results == [[str(rank), str(rank), "3"] for rank in range(3)]
    assert not any(name in os.environ for name in DISTRIBUTED)


def test_variables_are_those_of_the_launching_process_now(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    nbmp.launch(functions.pid, start_method=method)  # a fork server runs from here on
    monkeypatch.setenv("NEW_ONE", "seen")
    monkeypatch.delenv("HOME")
    assert nbmp.launch(variables, (("NEW_ONE", "HOME"),), start_method=method) == [["seen", None]]
    assert nbmp.launch(variables_by_c, ("NEW_ONE",), start_method=method) == ["seen"]


def test_env_adds_variables_for_the_ranks_only(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REPLACED", "old")
    context = nbmp.start_processes(
        variables,
        (("ADDED", "REPLACED", "RANK"),),
        join=False,
        start_method=method,
        env={"ADDED": "a", "REPLACED": "new", "RANK": "7"},
    )
    assert context is not None
    assert context.join()
    assert context.results == [["a", "new", "7"]]
    assert "ADDED" not in os.environ


def place(rank: int) -> tuple[str, list[str], list[str]]:
    return os.getcwd(), sys.path, sys.argv


def test_folder_path_and_arguments_are_those_of_now(
    method: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nbmp.launch(functions.pid, start_method=method)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path / "modules")
    monkeypatch.setattr(sys, "argv", ["program", "--option"])
    assert nbmp.launch(place, start_method=method) == [(str(tmp_path), sys.path, ["program", "--option"])]


def test_module_written_after_the_fork_server_started_is_found(
    method: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nbmp.launch(functions.pid, start_method=method)
    (tmp_path / f"late_{method}.py").write_text("def f(rank): return 'found'\n")
    monkeypatch.syspath_prepend(tmp_path)
    module = __import__(f"late_{method}")
    assert nbmp.launch(module.f, start_method=method) == ["found"]


def signals(rank: int) -> tuple[object, set[int], int, int]:
    return (
        signal.getsignal(signal.SIGTERM),
        signal.pthread_sigmask(signal.SIG_BLOCK, ()),
        os.getpgrp() - os.getpid(),
        signal.getsignal(signal.SIGCHLD) == signal.SIG_DFL,
    )


def test_signals_are_at_their_defaults_and_the_rank_leads_its_group(method: str) -> None:
    assert nbmp.launch(signals, start_method=method) == [(signal.SIG_DFL, set(), 0, True)]


def open_descriptors(rank: int) -> int:
    return len(os.listdir("/proc/self/fd"))


@pytest.mark.parametrize("clean", ["forkserver", "spawn"])
def test_rank_gets_no_descriptors_of_the_launching_process(clean: str, tmp_path: Path) -> None:
    before = nbmp.launch(open_descriptors, start_method=clean)
    files = [open(tmp_path / str(number), "w") for number in range(20)]  # noqa: SIM115
    for file in files:
        os.set_inheritable(file.fileno(), True)
    after = nbmp.launch(open_descriptors, start_method=clean)
    for file in files:
        file.close()
    assert after == before


def log(rank: int) -> None:
    logging.info("from %d", rank)
    logging.debug("too low")


def test_logging_of_the_launching_process_applies_in_ranks(method: str, capfd: pytest.CaptureFixture[str]) -> None:
    root = logging.getLogger()
    before = root.handlers[:], root.level
    root.handlers[:] = []
    logging.basicConfig(level=logging.INFO, format="%(levelname)s <%(message)s>")
    try:
        nbmp.launch(log, (), 2, start_method=method)
    finally:
        root.handlers[:], level = before
        root.setLevel(level)
    assert sorted(capfd.readouterr().err.splitlines()) == ["[0] INFO <from 0>", "[1] INFO <from 1>"]


def test_fork_server_keeps_nothing_of_a_rank_that_it_has_started() -> None:
    """Else what a killed rank has not read stays: its task, the queues in that, and what waits in them."""
    nbmp.launch(functions.give, (1,), start_method="forkserver")
    folder = Path(f"/proc/{forkserver.server_pid()}/fd")

    def sockets() -> int:
        return sum(os.readlink(path).startswith("socket:") for path in folder.iterdir())

    assert until(lambda: sockets() == 1)  # to the launching process
