#!/usr/bin/env python3
"""Developer commands of nbmp: make an environment here, then demo, test, lint, type-check, document.

    python3 dev.py demo                     run the first notebook, print what each cell prints
    python3 dev.py test [pytest arguments]  run the tests (--stack colab, --python 3.12: other environments)
    python3 dev.py lint | types | notebooks
    python3 dev.py docs                     the guide and the API reference, in artefacts/docs; the examples in both run
    python3 dev.py pictures                 take the pictures in docs/images anew
    python3 dev.py bench [--torch]          the benchmarks; with torch installed also beside torch
    python3 dev.py compare                  ask nbmp and its peers what the README's table says of them
    python3 dev.py soak [--minutes 30]      at random, for long, what programs do and what happens to them
    python3 dev.py check                    lint + types + docs + tests, notebooks included

Standard library only. Uses uv where it is found, else venv and pip. Every command it runs is printed.
Environments are `.venv*` folders beside this file; they are installed into again only when `pyproject.toml`
asks for something that they do not have yet.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
import platform
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

if sys.version_info < (3, 11):  # noqa: UP036 - anyone's python3 may be older than the package allows
    sys.exit(f"dev.py: nbmp needs Python 3.11 or newer; {sys.executable} is {platform.python_version()}")

import tomllib

ROOT = Path(__file__).resolve().parent
PYPROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())
FIRST_NOTEBOOK = "notebooks/01_first_ranks.ipynb"
INTERRUPTED_SECONDS = 60
"""How long a command that was interrupted may take to end."""
CHROMIUM_PACKAGES = ("chromium", "fonts-dejavu-core")


# --- running commands ---------------------------------------------------------------------------------


def attempt(*command: str | Path, env: dict[str, str] | None = None) -> int:
    """Print a command, run it in the repository and return its exit status.

    Ctrl-C in a terminal interrupts the command, too. It may have much to say at its end, as pytest has, and is waited
    for; the second Ctrl-C ends the waiting.
    """
    shown = shlex.join(str(part) for part in command).replace(f"{ROOT}{os.sep}", "")
    print(f"$ {shown}", flush=True)
    process = subprocess.Popen([str(part) for part in command], cwd=ROOT, env=env)
    try:
        return process.wait()
    except KeyboardInterrupt:
        with contextlib.suppress(KeyboardInterrupt, subprocess.TimeoutExpired):
            process.wait(INTERRUPTED_SECONDS)
        process.kill()
        sys.exit(128 + signal.SIGINT)


def run(*command: str | Path, env: dict[str, str] | None = None) -> None:
    """Print and run a command; end with its exit status if it fails."""
    if status := attempt(*command, env=env):
        print(f"dev.py: {command[0]} ended with exit status {status}", file=sys.stderr, flush=True)
        sys.exit(status if status > 0 else 128 - status)


def as_root(*command: str) -> bool:
    """Run a Debian package command where we may; return whether it worked."""
    return attempt(*command, env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"}) == 0


def can_apt_get() -> bool:
    return os.geteuid() == 0 and shutil.which("apt-get") is not None


# --- environments -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Environment:
    """A virtual environment of this repository: where it is, on which Python, with which groups."""

    path: Path
    interpreter: str
    groups: tuple[str, ...]

    @property
    def python(self) -> Path:
        return self.path / "bin" / "python"

    @property
    def stamp(self) -> Path:
        return self.path / "nbmp-installed.json"

    def variables(self) -> dict[str, str]:
        """Return the variables of its commands: nothing of the user's Python or Jupyter set-up gets in.

        A kernel named "python3" must be the environment's own. Jupyter would also look in JUPYTER_PATH and in
        the home folder, where kernels of other environments are registered. What is compiled is kept: tests start
        thousands of interpreters.
        """
        python = {"PYTHONPATH", "PYTHONHOME", "PYTHONSTARTUP", "PYTHONDONTWRITEBYTECODE"}
        foreign = {*python, "JUPYTER_PATH", "JUPYTER_CONFIG_PATH"}
        kept = {name: value for name, value in os.environ.items() if name not in foreign}
        home = self.path / "var" / "jupyter"
        home.mkdir(parents=True, exist_ok=True)
        return kept | {
            "PATH": f"{self.python.parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
            "VIRTUAL_ENV": str(self.path),
            "PYTHONNOUSERSITE": "1",
            "JUPYTER_PREFER_ENV_PATH": "1",
            "JUPYTER_CONFIG_DIR": str(home / "config"),
            "JUPYTER_DATA_DIR": str(home / "data"),
            "JUPYTER_RUNTIME_DIR": str(home / "runtime"),
            "IPYTHONDIR": str(home / "ipython"),
        }

    def run(self, *arguments: str | Path) -> None:
        """Run `python ARGUMENTS` in the environment."""
        run(self.python, *arguments, env=self.variables())


def group(name: str) -> list[str]:
    """Return the requirements of a dependency group, with the groups it includes."""
    found: list[str] = []
    for item in PYPROJECT["dependency-groups"][name]:
        found += group(item["include-group"]) if isinstance(item, dict) else [item]
    return found


def answer(interpreter: str | Path, code: str) -> str | None:
    """Return what `python -c CODE` prints, or None if it fails (pyenv's shims may lead nowhere)."""
    try:
        return subprocess.check_output([interpreter, "-c", code], stderr=subprocess.DEVNULL, text=True).strip()
    except (OSError, subprocess.CalledProcessError):
        return None


def minor_version(interpreter: str | Path) -> str | None:
    return answer(interpreter, "import ssl, sys; print('%d.%d' % sys.version_info[:2])")


def find_python(version: str) -> str | None:
    """Return an interpreter of that minor version: this one, one on PATH, or one of pyenv's."""
    on_path = [Path(folder) / f"python{version}" for folder in os.get_exec_path()]
    pyenv = sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python"), reverse=True)
    for candidate in [Path(sys.executable), *on_path, *pyenv]:
        if minor_version(candidate) == version:
            return str(candidate)
    return None


def ready(environment: Environment) -> Environment:
    """Make the environment and install what it lacks."""
    if minor_version(environment.python) is None:
        create(environment)
    project = hashlib.sha256(json.dumps(PYPROJECT["project"], sort_keys=True).encode()).hexdigest()
    wanted = {f"project {project}"}.union(*(group(name) for name in environment.groups))
    installed = set(json.loads(environment.stamp.read_text())) if environment.stamp.exists() else set()
    if not wanted <= installed:
        requirements = sorted(line for line in wanted if not line.startswith("project "))
        install(environment, "--editable", ".", *requirements)
        declared = set[str]().union(*(group(name) for name in PYPROJECT["dependency-groups"]))
        environment.stamp.write_text(json.dumps(sorted(wanted | (installed & declared)), indent=1))
    return environment


def create(environment: Environment) -> None:
    """Make an environment with nothing but pip in it."""
    options = ("venv", "--clear", "--seed", "--python", environment.interpreter)
    if not with_uv(*options, environment.path):
        create_with_pip(environment.interpreter, environment.path)


def with_uv(*arguments: str | Path) -> bool:
    """Do it with uv; return whether there is one and it worked."""
    uv = shutil.which("uv")
    system_certificates = {**os.environ, "UV_SYSTEM_CERTS": "1", "UV_NATIVE_TLS": "1"}  # new and old name
    return uv is not None and attempt(uv, *arguments, env=system_certificates) == 0


def create_with_pip(interpreter: str, path: Path) -> None:
    if attempt(interpreter, "-m", "venv", "--clear", path) != 0:
        create_without_ensurepip(interpreter, path)


def create_without_ensurepip(interpreter: str, path: Path) -> None:
    """Make an environment where Debian's python3-venv, which holds ensurepip, is missing.

    Debian's pip refuses to install anything outside an environment, but `pip --python` (22.3 and newer) works
    inside the one that is named.
    """
    run(interpreter, "-m", "venv", "--clear", "--without-pip", path)
    if attempt(interpreter, "-m", "pip", "--python", path / "bin" / "python", "install", "pip") == 0:
        return
    packages = ("apt-get", "install", "-y", "-qq", "--no-install-recommends", "python3-venv")
    if can_apt_get() and as_root("apt-get", "update") and as_root(*packages):
        run(interpreter, "-m", "venv", "--clear", path)
        return
    shutil.rmtree(path)
    sys.exit("dev.py: cannot make an environment: install uv, python3-venv or python3-pip, and try again")


def install(environment: Environment, *requirements: str) -> None:
    """Install with uv; where there is none, or it fails where pip is set up to work, with pip.

    Neither compiles anything beforehand: most of it is never imported.
    """
    if not with_uv("pip", "install", "--quiet", "--python", environment.python, *requirements):
        run(environment.python, "-m", "pip", "install", "--quiet", "--no-compile", *requirements)


def main_environment(*groups: str) -> Environment:
    return ready(Environment(ROOT / ".venv", sys.executable, groups))


def test_environment(stack: str | None, interpreter: str | None, version: str | None) -> Environment:
    """Return the environment to test in: `.venv`, or a leaner one for another stack or Python."""
    if stack is None and interpreter is None:
        return main_environment("test", "browser")
    name = "-".join(filter(None, [".venv", stack, version]))
    groups = ("pytest", "data", "demo", stack) if stack else ("pytest",)
    return ready(Environment(ROOT / name, interpreter or sys.executable, groups))


def install_chromium() -> None:
    """Install Debian's Chromium for the tests that drive a browser; without it they are skipped."""
    if shutil.which("chromium"):
        return
    release = Path("/etc/os-release")
    debian = release.exists() and "ID=debian" in release.read_text().splitlines()
    if not (debian and can_apt_get()):
        print("dev.py: no chromium, and only root on Debian can install it: browser tests will be skipped")
    elif not (
        as_root("apt-get", "update")
        and as_root("apt-get", "install", "-y", "-qq", "--no-install-recommends", *CHROMIUM_PACKAGES)
    ):
        print("dev.py: chromium could not be installed: browser tests will be skipped")


# --- commands -----------------------------------------------------------------------------------------


def demo() -> None:
    """Run the first notebook in a real kernel and print what its cells print."""
    main_environment("demo").run("tests/run_notebook.py", FIRST_NOTEBOOK)


def test(stack: str | None, version: str | None, if_present: bool, arguments: Sequence[str]) -> None:
    """Run pytest in the environment for that stack and Python."""
    interpreter = find_python(version) if version else None
    if version and interpreter is None:
        print(f"dev.py: there is no Python {version} here", flush=True)
        sys.exit(0 if if_present else 2)
    environment = test_environment(stack, interpreter, version)
    if environment.path.name == ".venv":
        install_chromium()
    environment.run("-m", "pytest", *side_by_side(arguments), *arguments)


def side_by_side(arguments: Sequence[str]) -> list[str]:
    """Return how pytest spreads the test files over processes, unless told by `-n` or for one test.

    One process more than cores: half of a test's time is waiting for processes to start and to end. A test that hangs
    fails by a signal: were its process ended, pytest-xdist would wait for the rest of its files.
    """
    if any(argument.startswith("-n") or "::" in argument for argument in arguments):
        return []
    processes = (os.cpu_count() or 1) + 1
    return ["-n", str(processes), "--dist", "loadfile", "--no-loadscope-reorder", "-o", "timeout_method=signal"]


def lint() -> None:
    """Check style, formatting and the direction of imports."""
    environment = main_environment("test", "browser", "lint")
    environment.run("-m", "ruff", "check", ".")
    environment.run("-m", "ruff", "format", "--check", ".")
    run(environment.python.parent / "lint-imports", env=environment.variables())


def types() -> None:
    """Check types, strictly, in the package, its tests and this file."""
    main_environment("test", "browser", "lint").run("-m", "mypy")


def notebooks() -> None:
    """Check and execute the notebooks, and nothing else."""
    test(None, None, False, ["-m", "notebooks"])


def docs() -> None:
    """Build the guide and the API reference, warnings are errors; run the examples of docstrings."""
    environment = main_environment("docs")
    for builder in ("html", "doctest"):
        output = f"artefacts/docs/{builder}"
        environment.run("-m", "sphinx", "-b", builder, "--fail-on-warning", "--keep-going", "--quiet", "docs", output)


def pictures() -> None:
    """Take the pictures of the README and the guide anew, in a real JupyterLab."""
    test(None, None, False, ["-n0", "tests/browser/test_pictures.py"])
    for picture in sorted((ROOT / "docs" / "images").glob("*.png")):
        run("cp", f"artefacts/{picture.name}", picture.relative_to(ROOT))


def compare() -> None:
    """Ask nbmp and its peers what the README's table says of them."""
    ready(Environment(ROOT / ".venv-peers", sys.executable, ("bench", "peers"))).run("tests/benchmarks/compare.py")


def bench(torch: bool) -> None:
    """Run the benchmarks one after another; tables and plots of launching and channels go to artefacts/bench."""
    environment = main_environment("test", "browser", *(["bench"] if torch else []))
    kept = ROOT / "artefacts" / "bench"
    shutil.rmtree(kept, ignore_errors=True)
    for script in sorted((ROOT / "tests" / "benchmarks").glob("bench_*.py")):
        run(environment.python, script.relative_to(ROOT), env=environment.variables() | {"NBMP_BENCH": str(kept)})
    environment.run("tests/benchmarks/report.py", kept.relative_to(ROOT))


def soak(arguments: Sequence[str]) -> None:
    """Launch, send, fail, interrupt and kill at random, and look for hangs and leaks (--help: its options)."""
    main_environment("test", "browser").run("-m", "tests.soak", *arguments)


def check(arguments: Sequence[str]) -> None:
    """Do all that a change must pass; the tests include the notebooks."""
    lint()
    types()
    docs()
    test(None, None, False, arguments)


def main() -> None:
    plain = {command.__name__: command for command in (demo, lint, types, notebooks, docs, pictures, compare)}
    as_written = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=as_written, allow_abbrev=False)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for command in (*plain.values(), check):
        commands.add_parser(command.__name__, help=command.__doc__, allow_abbrev=False)
    tests = commands.add_parser("test", help=test.__doc__, allow_abbrev=False)
    tests.add_argument("--stack", choices=["colab"], help="libraries as pinned by a hosted notebook service")
    tests.add_argument("--python", metavar="3.X", help="another Python, from PATH or pyenv")
    tests.add_argument("--if-present", action="store_true", help="do nothing if that Python is not here")
    benches = commands.add_parser("bench", help=bench.__doc__, allow_abbrev=False)
    benches.add_argument("--torch", action="store_true", help="install torch, to measure beside it")
    commands.add_parser("soak", help=soak.__doc__, add_help=False, allow_abbrev=False)
    options, rest = parser.parse_known_args()
    if options.command == "test":
        test(options.stack, options.python, options.if_present, rest)
    elif options.command in ("check", "soak"):
        {"check": check, "soak": soak}[options.command](rest)
    elif rest:
        parser.error(f"{options.command} takes no arguments: {shlex.join(rest)}")
    elif options.command == "bench":
        bench(options.torch)
    else:
        plain[options.command]()


if __name__ == "__main__":
    main()
