"""For every test: nothing of the user's Jupyter gets in, nothing is left behind, what cannot run says why."""

from __future__ import annotations

import gc
import importlib.util
import shutil
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest

import nbmp
from tests import forms, leaks

FAILED = pytest.StashKey[bool]()
FIRST = ("browser", "packaging", "test_notebooks.py", "hardening", "field_reports", "soak")
"""Files and folders that take long: one process runs a whole file, and if one of these came last the others would wait
for it."""
TOGETHER = "tests/browser/"
"""The files that one process runs one after the other: JupyterLab and its page are loaded once for them."""


@pytest.fixture(scope="session", autouse=True)
def own_jupyter(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep kernels to this environment: no kernelspec, profile or start-up file of the user's home."""
    home = tmp_path_factory.mktemp("jupyter")
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("JUPYTER_PATH", raising=False)
        patch.setenv("JUPYTER_PREFER_ENV_PATH", "1")
        for name in ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR"):
            patch.setenv(name, str(home / name.lower()))
        yield


@pytest.fixture(scope="session", autouse=True)
def preloaded() -> None:
    """Have the fork server load what each file of tests imports; its ranks would, for longer than they run."""
    nbmp.set_forkserver_preload(["pytest", "tests.leaks", "tests.waiting"])


@pytest.fixture(params=["fork", "forkserver", "spawn"])
def method(request: pytest.FixtureRequest) -> str:
    """Return each start method in turn."""
    return str(request.param)


@pytest.fixture(params=["file_descriptor", "file_system"])
def strategy(request: pytest.FixtureRequest) -> Iterator[str]:
    """Share arrays by each strategy in turn."""
    name = str(request.param)
    nbmp.set_sharing_strategy(name)
    yield name
    nbmp.set_sharing_strategy("file_descriptor")


@pytest.fixture(autouse=True)
def nothing_is_left(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fail a test that passed but left a process, a descriptor, a name in /dev/shm or a thread."""
    kept = {kind for mark in request.node.iter_markers("may_keep") for kind in mark.args}
    earlier = leaks.Holdings.now()
    yield
    if request.node.stash.get(FAILED, False):
        return  # its traceback holds the locals of every frame
    left = leaks.leftovers(earlier, [kind for kind in leaks.KINDS if kind not in kept])
    if left:
        pytest.fail("left behind by this test:\n  " + "\n  ".join(left), pytrace=False)


@pytest.fixture
def no_callbacks_of_the_collector() -> Iterator[None]:
    """Hypothesis has one, wherever it is loaded: an interrupt that falls into it is printed, and keeps its frames."""
    kept = gc.callbacks[:]
    gc.callbacks.clear()
    yield
    gc.callbacks.extend(kept)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.failed:
        item.stash[FAILED] = True
    return report


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Give each process whole files, as `--dist loadfile` does, and the files of `TOGETHER` to one."""
    from xdist.scheduler import LoadFileScheduling

    class Scheduling(LoadFileScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            return TOGETHER if nodeid.startswith(TOGETHER) else super()._split_scope(nodeid)

    return Scheduling(config, log) if config.getoption("dist") == "loadfile" else None


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--all-forms", action="store_true", help="run each test in all its forms: see tests/forms.py")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not forms.told_to_run_all(config):
        left_out = forms.redundant(items)
        without = set(items).difference(left_out)
        items[:] = [item for item in items if item in without]
        config.hook.pytest_deselected(items=left_out)
    items.sort(key=lambda item: FIRST.index(place) if (place := _place(item)) in FIRST else len(FIRST))
    reasons = {"browser": why_no_browser(), "gpu": why_no_gpu()}
    for item in items:
        if starts_interpreters(item):
            item.add_marker(pytest.mark.slow)
        for marker, reason in reasons.items():
            if reason and item.get_closest_marker(marker):
                item.add_marker(pytest.mark.skip(reason=reason))


def _place(item: pytest.Item) -> str:
    return item.path.relative_to(Path(__file__).parent).parts[0]


@pytest.fixture(scope="module", autouse=True)
def nothing_earlier_is_looked_at() -> None:
    """Leave what is there before a file of tests out of every collection of garbage from now on.

    A test looks for garbage before it says that something is left; to look at pytest, CuPy and Jupyter each time took
    longer than the tests.
    """
    gc.collect()
    gc.freeze()


def starts_interpreters(item: pytest.Item) -> bool:
    """Return whether this is the `spawn` form of a test; one module has it on every Python."""
    parameters = item.callspec.params if isinstance(item, pytest.Function) and hasattr(item, "callspec") else {}
    return parameters.get("method") == "spawn" and item.path.name != "test_results.py"


def why_no_browser() -> str | None:
    """Return what a test that drives a browser lacks here, or None."""
    for module in ("playwright", "jupyterlab"):
        if importlib.util.find_spec(module) is None:
            return f"{module} is not installed in this environment"
    if shutil.which("chromium") is None:
        return "there is no chromium here"
    return None


def why_no_gpu() -> str | None:
    """Return what a test on a real GPU lacks here, or None."""
    if not Path("/dev/nvidiactl").exists():
        return "there is no NVIDIA GPU here"
    if importlib.util.find_spec("cupy") is None:
        return "CuPy is not installed in this environment"
    return None


@pytest.fixture(scope="session")
def chromium() -> str:
    """Return the path of the browser for Playwright's `executable_path`."""
    return shutil.which("chromium") or ""
