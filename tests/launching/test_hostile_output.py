"""Ranks that write what nobody expects, and what a launch then costs."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

import nbmp
from tests import scripts


def write_without_newlines(rank: int, size: int) -> None:
    sys.stdout.write("x" * size)


def test_long_line_costs_time_in_proportion_to_its_length(method: str, capfd: pytest.CaptureFixture[str]) -> None:
    begun = time.monotonic()
    nbmp.launch(write_without_newlines, (20_000_000,), start_method=method)
    assert time.monotonic() - begun < 4
    assert capfd.readouterr().out == "[0] " + "x" * 20_000_000 + "\n"


def leave_writers(rank: int) -> None:
    for _ in range(3):
        subprocess.Popen(["timeout", "20", "yes"], start_new_session=True)
    time.sleep(0.2)


def test_programs_that_outlive_their_rank_and_go_on_writing_do_not_keep_the_launch(method: str, tmp_path: Path) -> None:
    source = """
        import sys, time, nbmp
        from tests.launching.test_hostile_output import leave_writers
        sys.stdout = open("out", "w")
        begun = time.monotonic()
        nbmp.launch(leave_writers, start_method=sys.argv[1])
        print(time.monotonic() - begun < 10, file=sys.stderr)
    """
    done = scripts.run(tmp_path, source, method)
    assert done.stderr == "True\n"


FLOODING = """
    import sys, time, nbmp

    class Broken:
        def write(self, text):
            raise BrokenPipeError

    def talk(rank):
        for number in range(10):
            print(number)
            time.sleep(0.1)
        return "done"

    sys.stdout, stdout = Broken(), sys.stdout
    result = nbmp.launch(talk, start_method=sys.argv[1])
    sys.stdout = stdout
    print(result)
"""


def test_output_that_cannot_be_shown_is_told_once(method: str, tmp_path: Path) -> None:
    done = scripts.run(tmp_path, FLOODING, method)
    assert done.stdout == "['done']\n"
    assert done.stderr.count("Traceback") == 1
