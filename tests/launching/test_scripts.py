"""Scripts as people write them: without a main guard, with one, from a pipe."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import nbmp
from tests import scripts

UNGUARDED = """
    import sys
    import nbmp

    open("ran.txt", "a").write("once\\n")
    scale = 3

    class Point:
        def __init__(self, x):
            self.x = x

    class OwnError(Exception):
        pass

    def helper(x):
        return x * scale

    def work(rank, point):
        if rank == 5:
            raise OwnError("of the script")
        return Point(helper(rank) + point.x)

    results = nbmp.launch(work, (Point(1),), 3, start_method=sys.argv[1])
    print([type(result) is Point for result in results], [result.x for result in results])
    try:
        nbmp.launch(work, (Point(1),), 6, start_method=sys.argv[1])
    except nbmp.ProcessRaisedException as error:
        print(type(error.__cause__) is OwnError, error.__cause__, error.failures[0].summary)
    scale = 4
    print(nbmp.launch(lambda rank: helper(rank), (), 3, start_method=sys.argv[1]))
    print(nbmp.launch(lambda rank: Point, (), 1, start_method=sys.argv[1])[0] is Point)
"""

EXPECTED = """\
[True, True, True] [1, 4, 7]
True of the script OwnError: of the script
[0, 4, 8]
True
"""


def test_script_without_a_main_guard_runs_once_and_keeps_its_classes(method: str, tmp_path: Path) -> None:
    assert scripts.output(tmp_path, UNGUARDED, method) == EXPECTED
    assert (tmp_path / "ran.txt").read_text() == "once\n"


def test_script_with_a_main_guard_runs_once(method: str, tmp_path: Path) -> None:
    body = UNGUARDED.replace("    results =", "    if __name__ == '__main__':\n      results =")
    assert scripts.output(tmp_path, body.split("    print([type")[0] + "      print(len(results))\n", method) == "3\n"
    assert (tmp_path / "ran.txt").read_text() == "once\n"


def test_program_from_standard_input_works(method: str, tmp_path: Path) -> None:
    program = f"import nbmp\ndef f(rank):\n    return rank\nprint(nbmp.launch(f, (), 2, start_method={method!r}))\n"
    done = subprocess.run(
        [sys.executable, "-"], input=program, cwd=tmp_path, env=scripts.environment(), capture_output=True, text=True
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "[0, 1]\n", "")


def test_module_run_with_m_works(method: str, tmp_path: Path) -> None:
    (tmp_path / "package").mkdir()
    (tmp_path / "package/__init__.py").touch()
    scripts.write(tmp_path / "package", UNGUARDED, "tool.py")
    done = subprocess.run(
        [sys.executable, "-B", "-m", "package.tool", method],
        cwd=tmp_path,
        env=scripts.environment(),
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, EXPECTED, "")
    assert (tmp_path / "ran.txt").read_text() == "once\n"


def test_file_named_in_main_is_never_run_again(method: str, tmp_path: Path) -> None:
    source = """
        import os, sys, nbmp
        open("side.py", "w").write('open("ran.txt", "a").write("x")')
        __file__ = os.path.abspath("side.py")
        print(nbmp.launch(lambda rank: rank, (), 2, start_method=sys.argv[1]))
    """
    assert scripts.output(tmp_path, source, method) == "[0, 1]\n"
    assert not (tmp_path / "ran.txt").exists()


def test_file_beside_the_script_that_is_named_like_a_standard_module_does_no_harm(method: str, tmp_path: Path) -> None:
    (tmp_path / "calendar.py").write_text("raise RuntimeError('the wrong one')")
    source = "import sys, nbmp\nprint(nbmp.launch(lambda rank: rank, (), 2, start_method=sys.argv[1]))"
    assert scripts.output(tmp_path, source, method) == "[0, 1]\n"


def test_uncaught_failure_ends_the_script_with_the_ranks_traceback(method: str, tmp_path: Path) -> None:
    source = "import sys, nbmp\ndef f(rank): 1 / rank\nnbmp.launch(f, (), 1, start_method=sys.argv[1])"
    done = scripts.run(tmp_path, source, method)
    assert done.returncode == 1
    assert "-- Process 0 terminated with the following error:" in done.stderr
    assert "ProcessRaisedException: rank 0 of 1 raised ZeroDivisionError: division by zero\n" in done.stderr
    assert done.stderr.count("ZeroDivisionError: division by zero") >= 1
    assert 'script.py", line 2, in f' in done.stderr
    assert done.stderr.count("/nbmp/") == 1  # nbmp's frames are left out, but for that of the call


@pytest.mark.parametrize("name", ["launch", "start_processes", "spawn"])
def test_public_functions_are_not_shadowed_by_modules(name: str) -> None:
    assert callable(getattr(nbmp, name))


def test_folder_that_is_gone_does_not_hinder(method: str, tmp_path: Path) -> None:
    source = """
        import os, sys, nbmp
        os.mkdir("gone")
        os.chdir("gone")
        os.rmdir("../gone")
        print(nbmp.launch(lambda rank: rank, nprocs=2, start_method=sys.argv[1]))
    """
    assert scripts.output(tmp_path, source, method) == "[0, 1]\n"


def test_module_that_launches_when_imported_does_not_launch_in_its_ranks(method: str, tmp_path: Path) -> None:
    (tmp_path / "careless.py").write_text(
        "import sys\nimport nbmp\ndef work(rank):\n    return rank\n"
        "print(nbmp.launch(work, nprocs=2, start_method=sys.argv[1]))\n"
    )
    done = scripts.run(tmp_path, "import careless", method)
    if method == "fork":
        assert done.stdout == "[0, 1]\n"
    else:
        assert "under `if __name__ == '__main__':`" in done.stderr
        assert done.returncode == 1
