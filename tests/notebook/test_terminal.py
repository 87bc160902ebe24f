"""`%%mpspawn --bg` in IPython in a terminal: no kernel, no pictures, the same words."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from tests import scripts
from tests.notebook.kernels import plain

CELL = "get_ipython().run_cell({!r})\n"


def ran(folder: Path, *cells: str) -> subprocess.CompletedProcess[str]:
    """Run cells in a terminal's IPython to its end."""
    scripts.write(folder, "".join(map(CELL.format, ("%load_ext nbmp\nimport time", *cells))), "cells.py")
    argv = ["--simple-prompt", "--TerminalInteractiveShell.term_title=False", "cells.py"]
    done = scripts.run(folder, f"import IPython\nIPython.start_ipython(argv={argv})")
    assert done.returncode == 0, done.stderr
    return done


def test_lines_and_results_come_while_others_run(tmp_path: Path) -> None:
    join = "import sys\n_ = sys.stdout.write(f'joined {ctx.join()}\\n')"  # in one piece, for the results come too
    done = ran(tmp_path, "%%mpspawn -n 2 --bg --name ctx\nprint('line')\nrank", join)
    lines = plain(done.stdout).splitlines()
    assert sorted(lines[:2]) == ["[0] line", "[1] line"]
    assert set(lines[2:]) >= {"joined True"}
    assert not done.stderr


def test_a_failure_is_told_at_once_and_not_again_at_exit(tmp_path: Path) -> None:
    follows = "any(thread.name == 'nbmp-background' for thread in threading.enumerate())"
    wait = f"import threading\nctx.processes[0].join()\nwhile {follows}: time.sleep(0.01)"
    begun = f"import threading\nwhile not {follows}: time.sleep(0.001)\nopen('go', 'w').close()"
    done = ran(
        tmp_path,
        "%%mpspawn -n 2 --bg --name ctx\nimport os, time\nwhile not os.path.exists('go'): time.sleep(0.01)\n1 / rank",
        begun,
        wait,
    )
    assert plain(done.stderr).startswith("ProcessRaisedException: rank 0 of 2 ")
    assert plain(done.stderr).count("ZeroDivisionError") == 1


def test_ranks_that_still_run_at_exit_are_stopped_and_that_is_said(tmp_path: Path) -> None:
    done = ran(tmp_path, "%%mpspawn -n 2 --bg\ntime.sleep(100)")
    pattern = r"nbmp: launch-1 still ran and was stopped: ranks 0 and 1 ended \d\.\d s after SIGTERM\n"
    assert re.fullmatch(pattern, done.stderr)


def test_a_launch_as_a_value_and_monitor_are_tables_of_text(tmp_path: Path) -> None:
    done = ran(
        tmp_path,
        "import nbmp\nctx = nbmp.start_processes(lambda rank: None, nprocs=2, join=False)\nctx.join()\nctx",
        "nbmp.monitor()",
    )
    told = plain(done.stdout)
    assert len(re.findall(r"^(?:Out\[\d+\]: *)?2 ranks \(\w+\) 00:00: 2 done$", told, re.MULTILINE)) == 2
    assert not done.stderr
