"""The environment that Binder builds runs the first notebook; the wheel, built from the sdist, runs the README.

One environment serves both: first as Binder builds it, then with the wheel in place of what Binder installed. Nothing
of it sees this checkout: commands run elsewhere, in isolated mode.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

import dev
from tests.pages import README, ROOT, blocks, program, promised, write_notebook

BINDER = ROOT / "binder"

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("packaging")


@pytest.fixture(scope="module")
def binder(folder: Path) -> Path:
    """Build an environment from binder/ as repo2docker does; return its Python."""
    version = (BINDER / "runtime.txt").read_text().strip().removeprefix("python-")
    environment = dev.Environment(folder / "binder", dev.find_python(version) or sys.executable, ())
    dev.create(environment)
    dev.install(environment, "-r", "binder/requirements.txt")  # in the repository, which `.` is
    return environment.python


@pytest.fixture(scope="module")
def built(folder: Path) -> Path:
    """Build the sdist, and the wheel from it; return the folder with both."""
    installer = ["--installer", "uv"] if shutil.which("uv") else []  # for the two environments that it builds in
    command = [sys.executable, "-m", "build", *installer, "--outdir", str(folder / "dist"), str(ROOT)]
    subprocess.run(command, check=True)
    return folder / "dist"


def without_checkout() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTEST_CURRENT_TEST")}


def run_in_kernel_of(python: Path, notebook: Path, folder: Path) -> str:
    """Run a notebook in a kernel of that environment; return what its cells print."""
    kernel = folder / "jupyter" / "kernels" / "python3" / "kernel.json"
    kernel.parent.mkdir(parents=True, exist_ok=True)
    command = [str(python), "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    kernel.write_text(json.dumps({"argv": command, "display_name": "fresh", "language": "python"}))
    variables = {**without_checkout(), "JUPYTER_PATH": str(folder / "jupyter")}
    runner = [sys.executable, str(ROOT / "tests" / "run_notebook.py"), str(notebook)]
    done = subprocess.run(runner, cwd=folder, env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_binder_folder_holds_what_repo2docker_needs_and_nothing_else() -> None:
    assert sorted(path.name for path in BINDER.iterdir()) == ["requirements.txt", "runtime.txt"]
    assert re.fullmatch(r"python-3\.\d+\n", (BINDER / "runtime.txt").read_text())
    wanted = [line for line in (BINDER / "requirements.txt").read_text().splitlines() if not line.startswith("#")]
    assert wanted == [".[notebooks]"]
    assert set(dev.PYPROJECT["project"]["optional-dependencies"]["notebooks"]) <= set(dev.group("demo"))


def test_first_notebook_runs_in_the_environment_that_binder_builds(binder: Path, tmp_path: Path) -> None:
    notebook = tmp_path / "first.ipynb"
    notebook.write_bytes((ROOT / dev.FIRST_NOTEBOOK).read_bytes())  # away from the checkout
    assert "after training: 9" in run_in_kernel_of(binder, notebook, tmp_path)


def test_sdist_and_wheel_hold_what_they_should(built: Path) -> None:
    (sdist,), (wheel,) = built.glob("*.tar.gz"), built.glob("*.whl")
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2].partition("/")[0] for name in archive.getnames()}
    assert {"nbmp", "tests", "notebooks", "docs", "binder", "dev.py", "README.md", "LICENSE"} <= names
    assert not names & {"artefacts", ".venv", ".ci"}
    files = zipfile.ZipFile(wheel).namelist()
    assert {name.partition("/")[0] for name in files} == {
        "nbmp",
        f"nbmp-{dev.PYPROJECT['project']['version']}.dist-info",
    }
    modules = {str(path.relative_to(ROOT)) for path in (ROOT / "nbmp").rglob("*.py")}
    assert modules <= set(files)
    assert "nbmp/py.typed" in files


def test_installed_wheel_runs_the_readme_without_a_checkout(binder: Path, built: Path, tmp_path: Path) -> None:
    (wheel,) = built.glob("*.whl")
    environment = dev.Environment(binder.parent.parent, sys.executable, ())
    dev.install(environment, "--no-deps", "--force-reinstall", str(wheel))
    where = [str(binder), "-I", "-c", "import nbmp; print(nbmp.__file__, nbmp.__version__)"]
    file, version = subprocess.check_output(where, text=True, cwd=tmp_path).split()
    assert Path(file).is_relative_to(environment.path)
    assert version == dev.PYPROJECT["project"]["version"]

    script = tmp_path / "quickstart.py"
    script.write_text(program(README))
    shown = subprocess.check_output([str(binder), "-I", str(script)], text=True, cwd=tmp_path)
    assert shown.splitlines() == promised(program(README))

    notebook = tmp_path / "readme.ipynb"
    write_notebook(notebook, [*blocks(README, "ipython"), "assert sum(sums) == sum(range(1000))"])
    assert "[3] hello" in run_in_kernel_of(binder, notebook, tmp_path)
