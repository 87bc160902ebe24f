"""dev.py needs nothing but Python, finds interpreters that run, and installs no more than it must."""

from __future__ import annotations

import ast
import os
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

import dev

ROOT = Path(dev.__file__).parent


@pytest.fixture
def path_of_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an empty folder that is all of PATH, in a home without pyenv."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def test_dev_imports_the_standard_library_only() -> None:
    tree = ast.parse((ROOT / "dev.py").read_text())
    imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    imported |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert {name.split(".")[0] for name in imported} <= sys.stdlib_module_names


def test_help_lists_every_command() -> None:
    shown = subprocess.check_output([sys.executable, "dev.py", "--help"], cwd=ROOT, text=True)
    for command in ("demo", "test", "lint", "types", "notebooks", "docs", "pictures", "bench", "compare", "check"):
        assert re.search(rf"^    {command}\b", shown, re.MULTILINE), command


def test_dead_shim_is_passed_over(path_of_commands: Path) -> None:
    shim = path_of_commands / "python3.99"
    shim.write_text("#!/bin/sh\necho 'command not found' >&2\nexit 127\n")
    shim.chmod(0o755)
    assert dev.find_python("3.99") is None


def test_living_interpreter_on_path_is_found(path_of_commands: Path) -> None:
    other = path_of_commands / "python3.99"
    other.write_text("#!/bin/sh\necho 3.99\n")
    other.chmod(0o755)
    assert dev.find_python("3.99") == str(other)


def test_interpreter_of_pyenv_is_found(path_of_commands: Path) -> None:
    other = path_of_commands / ".pyenv/versions/3.99.1/bin/python"
    other.parent.mkdir(parents=True)
    other.write_text("#!/bin/sh\necho 3.99\n")
    other.chmod(0o755)
    assert dev.find_python("3.99") == str(other)


@pytest.mark.usefixtures("path_of_commands")
def test_missing_python_is_skipped_only_on_request(capfd: pytest.CaptureFixture[str]) -> None:
    for if_present, status in ((True, 0), (False, 2)):
        with pytest.raises(SystemExit) as ended:
            dev.test(None, "3.99", if_present, [])
        assert ended.value.code == status
        assert "there is no Python 3.99 here" in capfd.readouterr().out


def test_environment_is_installed_once_until_requirements_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installs: list[tuple[str, ...]] = []
    monkeypatch.setattr(dev, "install", lambda _, *requirements: installs.append(requirements))
    monkeypatch.setattr(dev, "create", lambda environment: environment.path.mkdir(exist_ok=True))
    lean = dev.Environment(tmp_path / "env", sys.executable, ("demo",))
    full = dev.Environment(tmp_path / "env", sys.executable, ("test", "browser"))
    for environment in (lean, lean, full, lean, full):
        dev.ready(environment)
    assert len(installs) == 2
    monkeypatch.setitem(dev.PYPROJECT["project"], "version", "9.9")
    dev.ready(lean)
    assert len(installs) == 3


def test_kernels_of_other_environments_are_out_of_sight(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    foreign = tmp_path / "foreign"
    for folder in (foreign / "kernels", foreign / ".local/share/jupyter/kernels"):
        kernel = folder / "python3" / "kernel.json"
        kernel.parent.mkdir(parents=True)
        kernel.write_text('{"argv": ["/bin/false"], "display_name": "foreign", "language": "python"}')
    monkeypatch.setenv("JUPYTER_PATH", str(foreign))
    monkeypatch.setenv("HOME", str(foreign))
    environment = dev.Environment(tmp_path / "env", sys.executable, ())
    code = "from jupyter_client.kernelspec import get_kernel_spec as g; print(g('python3').display_name)"
    command = [sys.executable, "-c", code]
    assert "foreign" in subprocess.check_output(command, text=True)
    assert "foreign" not in subprocess.check_output(command, text=True, env=environment.variables())


def test_tools_are_pinned_and_libraries_are_ranges() -> None:
    groups = dev.PYPROJECT["dependency-groups"]
    for name in ("test", "browser", "lint", "docs", "colab"):
        assert all("==" in line for line in groups[name] if isinstance(line, str)), name
    for line in [*dev.PYPROJECT["project"]["dependencies"], *groups["demo"]]:
        assert re.fullmatch(r"[\w.-]+>=[\d.]+", line), "a lower bound and nothing else"


def test_lower_bounds_leave_the_hosted_stack_alone() -> None:
    pinned = dict(line.split("==") for line in dev.group("colab"))
    for line in dev.PYPROJECT["project"]["dependencies"]:
        name, bound = line.split(">=")
        if name in pinned:
            assert [int(n) for n in pinned[name].split(".")] >= [int(n) for n in bound.split(".")], name


@pytest.mark.skipif(shutil.which("unshare") is None, reason="there is no unshare here")
def test_environment_is_made_and_installed_into_where_ensurepip_and_uv_are_missing(tmp_path: Path) -> None:
    """Debian without python3-venv: here an empty folder covers ensurepip, in a mount namespace of its own."""
    ensurepip = Path(sysconfig.get_path("stdlib")) / "ensurepip"
    (tmp_path / "empty").mkdir()
    cover = f"[ ! -d {ensurepip} ] || mount --bind {tmp_path / 'empty'} {ensurepip}"
    script = f'{cover} && exec {sys.executable} -c "$1"'
    code = (
        "import dev, pathlib, sys\n"
        f"path = pathlib.Path({str(tmp_path / 'env')!r})\n"
        "dev.create_with_pip(sys.executable, path)\n"
        "dev.with_uv = lambda *arguments: False\n"
        "dev.install(dev.Environment(path, sys.executable, ()), 'iniconfig')\n"
    )
    done = subprocess.run(
        ["unshare", "-m", "bash", "-c", script, "bash", code],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if "Operation not permitted" in done.stderr or "permission denied" in done.stderr:
        pytest.skip("only root may mount")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "--without-pip" in done.stdout
    subprocess.check_call([tmp_path / "env/bin/python", "-c", "import iniconfig"])


SLOW_TO_END = """
import dev, sys
dev.attempt(sys.executable, "-c", '''
import time
try:
    print("runs", flush=True)
    time.sleep(60)
except KeyboardInterrupt:
    time.sleep(1)
    print("the report")
''')
"""


def test_interrupted_command_has_its_say() -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", SLOW_TO_END], cwd=ROOT, stdout=subprocess.PIPE, text=True, process_group=0
    )
    assert process.stdout is not None
    with process.stdout as lines:
        assert any(line == "runs\n" for line in lines)
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does for Ctrl-C
        assert lines.read() == "the report\n"
    assert process.wait() == 130
