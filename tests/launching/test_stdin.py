"""Ranks have no keyboard."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

import nbmp


def ask(rank: int) -> str:
    return input("name? ")


def read_all(rank: int) -> str:
    return sys.stdin.read()


def read_line(rank: int) -> str:
    return sys.stdin.readline()


def loop_over_lines(rank: int) -> list[str]:
    return list(sys.stdin)


def read_in_a_program(rank: int) -> tuple[int, str]:
    done = subprocess.run(["cat"], stdout=subprocess.PIPE, text=True, timeout=20)
    return done.returncode, done.stdout


def read_descriptor(rank: int) -> bytes:
    return os.read(0, 10)


def stop_here(rank: int) -> str:
    breakpoint()
    return "went on"


@pytest.mark.parametrize("reading", [ask, read_all, read_line, loop_over_lines])
def test_asking_for_input_raises_at_once_and_says_what_to_do(method: str, reading: object) -> None:
    with pytest.raises(nbmp.ProcessRaisedException, match=r"no keyboard.*pass the answer as an argument") as raised:
        nbmp.launch(reading, start_method=method)  # type: ignore[arg-type]
    assert isinstance(raised.value.__cause__, nbmp.StdinError)


def test_breakpoint_says_what_to_do_instead(method: str) -> None:
    with pytest.raises(nbmp.ProcessRaisedException, match=r"no keyboard.*without ranks.*%mpstack") as raised:
        nbmp.launch(stop_here, start_method=method)
    assert "breakpoint()" in str(raised.value)


def test_debugger_that_the_environment_names_is_called(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONBREAKPOINT", "builtins.print")
    assert nbmp.launch(stop_here, start_method="spawn") == ["went on"]


def test_program_that_reads_input_gets_its_end(method: str) -> None:
    assert nbmp.launch(read_in_a_program, (), 2, start_method=method) == [(0, ""), (0, "")]


def test_descriptor_0_is_at_its_end(method: str) -> None:
    assert nbmp.launch(read_descriptor, start_method=method) == [b""]
