"""The warning of an unsafe fork points to the line of the user's that asked for it."""

from __future__ import annotations

from pathlib import Path

from tests.scripts import run

DANGER = """
    import nbmp
    from nbmp import platforms
    platforms.unsafe_to_fork = lambda: "there is a danger"
"""


def test_it_points_to_the_call(tmp_path: Path) -> None:
    calls = {
        "launch": "nbmp.launch(abs, start_method='fork')",
        "start_processes": "nbmp.start_processes(abs, start_method='fork')",
        "Pool": "nbmp.Pool(1, start_method='fork').terminate()",
        "Process": "nbmp.get_context('fork').Process(target=abs, args=(1,)).start()",
        "set_start_method": "nbmp.set_start_method('fork'); nbmp.launch(abs)",
    }
    for name, call in calls.items():
        done = run(tmp_path, f"{DANGER}    {call}\n")
        assert done.returncode == 0, done.stderr
        first, second, *_ = done.stderr.splitlines()
        assert first.startswith(f"{tmp_path}/script.py:5: RuntimeWarning: fork was asked for, but there is"), name
        assert second.strip() == call


def test_it_points_to_the_cell_of_a_magic(tmp_path: Path) -> None:
    source = f"""{DANGER}
    from IPython.core.interactiveshell import InteractiveShell
    shell = InteractiveShell.instance()
    shell.run_cell("%load_ext nbmp")
    shell.run_cell("%%mpspawn -n 1 --start-method fork --no-monitor\\n1")
    """
    done = run(tmp_path, source, env={"IPYTHONDIR": str(tmp_path)})
    warned = [line for line in done.stderr.splitlines() if "RuntimeWarning" in line]
    assert len(warned) == 1, done.stderr
    assert "ipython-input" in warned[0]
