"""What import-linter cannot see: what is really loaded, in a program and in a rank; the front door's list."""

from __future__ import annotations

import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import nbmp

EDGES = ("notebook", "cuda", "launchers")
FOREIGN = ("IPython", "ipykernel", "ipywidgets", "cupy", "matplotlib")

RANK_SCRIPT = f"""
import sys
import nbmp

def loaded(rank):
    return [name for name in {FOREIGN} if name in sys.modules]

context = nbmp.start_processes(loaded, nprocs=2, join=False, start_method=sys.argv[1])
while not context.join():
    pass
print(context.results)
"""


def core_modules() -> list[str]:
    """Return the full names of all modules of the core."""
    found = pkgutil.walk_packages(nbmp.__path__, "nbmp.")
    return ["nbmp", *(module.name for module in found if module.name.split(".")[1] not in EDGES)]


def output_of(*arguments: str) -> str:
    """Return what `python ARGUMENTS` prints; a failure shows in the test's own standard error."""
    return subprocess.check_output([sys.executable, *arguments], text=True).strip()


def test_core_loads_no_notebook_no_widgets_no_cupy() -> None:
    imports = "\n".join(f"import {name}" for name in core_modules())
    code = f"{imports}\nimport sys; print([name for name in {FOREIGN} if name in sys.modules])"
    assert output_of("-c", code) == "[]"


def test_front_door_loads_nothing_until_asked() -> None:
    code = "import sys, nbmp; print(sorted(name for name in sys.modules if name.startswith('nbmp.')))"
    assert output_of("-c", code) == "[]"


@pytest.mark.parametrize("start_method", ["fork", "forkserver", "spawn"])
def test_rank_that_does_nothing_has_no_notebook_modules(start_method: str, tmp_path: Path) -> None:
    script = tmp_path / "no_main_guard.py"
    script.write_text(RANK_SCRIPT)
    assert output_of(str(script), start_method) == "[[], []]"


def test_front_door_lists_what_is_there_in_order() -> None:
    assert list(nbmp.__all__) == sorted(nbmp.__all__)
    assert [name for name in nbmp.__all__ if not hasattr(nbmp, name)] == []
    assert set(nbmp.__all__) <= set(dir(nbmp))


def test_no_module_hides_a_name_of_the_front_door() -> None:
    """Importing `nbmp.a.b` binds `nbmp.a`, whatever the front door says that `a` is."""
    imports = "\n".join(f"import {name}" for name in core_modules())
    code = f"{imports}\nprint([n for n in nbmp.__all__ if getattr(getattr(nbmp, n), '__package__', 'x') == 'nbmp'])"
    assert output_of("-c", code) == "[]"


def test_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no_such_name"):
        nbmp.no_such_name  # noqa: B018
