"""The same tests on the stand-in, everywhere, and on a GPU where there is one.

    python3 -m pytest -m gpu -n 4 tests/cuda

Those on a GPU want a run of their own, since they initialise CUDA in the process of the tests, which then cannot fork
ranks: see CONTRIBUTING.md. They compile small kernels. Those that run a kernel of Jupyter are skipped without
jupyter_client.
Without CuPy, whose wheel needs no GPU, only what needs none is left.
"""

from __future__ import annotations

import gc
import os
import sys
import warnings
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from nbmp.cuda import devices, driver, received
from nbmp.cuda.loans import loans
from nbmp.cuda.order import tickets
from nbmp.memory import janitor
from tests.waiting import until

if TYPE_CHECKING:
    from tests.cuda import standin

collect_ignore_glob = [] if find_spec("cupy") else ["test_[!w]*.py"]


ON_GPU = [pytest.mark.gpu, pytest.mark.may_keep("descriptors")]  # the driver opens some of its own as it goes


@pytest.fixture(params=["stand-in", pytest.param("gpu", marks=ON_GPU)])
def gpu(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Have a GPU: the stand-in or a real one."""
    if request.param == "stand-in":
        folder = tmp_path / "machine"
        folder.mkdir()
        yield from _stand_in(folder, monkeypatch, request)
    else:
        yield "gpu"
        _end_if_the_gpu_failed()
        assert until(_nothing_is_shared)


def _end_if_the_gpu_failed() -> None:
    """End this process of pytest-xdist, which starts another: an error of a GPU's work is that of all that follows."""
    try:
        driver.finish(0)
    except RuntimeError as error:
        if "PYTEST_XDIST_WORKER" not in os.environ:
            raise
        print(f"the GPU failed, so this worker ends: {error}", file=sys.__stderr__, flush=True)
        os._exit(1)


@pytest.fixture
def machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Iterator[standin.StandIn]:
    """Have the stand-in, for what a real GPU does not tell."""
    folder = tmp_path / "machine"
    folder.mkdir()
    from tests.cuda import standin

    for _ in _stand_in(folder, monkeypatch, request):
        assert standin.machine is not None
        yield standin.machine


def _stand_in(folder: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Iterator[str]:
    from tests.cuda import standin

    monkeypatch.setenv(standin.FOLDER, str(folder))
    for name in standin.REPLACED:
        monkeypatch.setattr(driver, name, getattr(driver, name))  # so that they are put back
    machine = standin.install(folder)
    try:
        yield "stand-in"
        assert until(_nothing_is_shared)
        allowed = [text for mark in request.node.iter_markers("violates") for text in mark.args]
        found = [line for line in machine.noted("violations") if not any(text in line for text in allowed)]
        assert not found
    finally:
        devices.uuid_of.cache_clear()
        devices.device_of.cache_clear()


def _nothing_is_shared() -> bool:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # sockets of queues that a traceback held in a circle
        gc.collect()
    received.settle()
    janitor.trim()
    return not loans.sweep() and not received.blocks() and not tickets.trim()
