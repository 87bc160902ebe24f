"""CUDA does not survive a fork: what is chosen, refused and said, with a stand-in for the driver's library."""

from __future__ import annotations

import pickle
from pathlib import Path

import nbmp
from tests import fakecuda, scripts

pytestmark = fakecuda.NEEDS_COMPILER

BEGIN = """
    import ctypes, os, sys
    import nbmp

    def hello(rank):
        return rank

    def children():
        return open(f"/proc/self/task/{os.getpid()}/children").read().split()

    driver = ctypes.CDLL(sys.argv[1])
"""

CHOICE = (
    BEGIN
    + """
    print(nbmp.default_start_method().method)             # loaded, but nobody has called cuInit
    assert nbmp.launch(hello, (), 2, start_method="fork") == [0, 1]
    print(ctypes.c_int.in_dll(driver, "inits").value)     # asking has not initialised it
    driver.cuInit(0)
    choice = nbmp.default_start_method()
    print(choice.method, "|", choice.reason)
    assert nbmp.launch(hello, (), 2) == [0, 1]
"""
)

REFUSED = (
    BEGIN
    + """
    driver.cuInit(0)
    before = children()
    ways = {
        "start_processes": lambda: nbmp.start_processes(hello, nprocs=2, start_method="fork"),
        "launch": lambda: nbmp.launch(hello, nprocs=2, start_method="fork"),
        "Pool": lambda: nbmp.get_context("fork").Pool(1),
        "Process": lambda: nbmp.get_context("fork").Process(target=print).start(),
        "Executor": lambda: nbmp.ProcessPoolExecutor(1, nbmp.get_context("fork")).submit(print),
        "chosen": lambda: (nbmp.set_start_method("fork"), nbmp.launch(hello)),
    }
    for name, way in ways.items():
        try:
            way()
        except nbmp.CudaForkError as error:
            assert children() == before
            print(name, "|", error)
    import gc
    gc.collect()
"""
)


def test_default_leaves_fork_once_cuda_is_initialised_and_asking_does_not_initialise_it(tmp_path: Path) -> None:
    loaded, inits, choice = scripts.output(tmp_path, CHOICE, str(fakecuda.build(tmp_path))).splitlines()
    assert (loaded, inits) == ("fork", "0")
    assert choice.startswith(
        "forkserver | CUDA is initialised in this process (by a library that uses the CUDA driver)"
    )


def test_explicit_fork_is_refused_before_anything_starts(tmp_path: Path) -> None:
    lines = scripts.output(tmp_path, REFUSED, str(fakecuda.build(tmp_path))).splitlines()
    assert [line.split(" | ")[0] for line in lines] == [
        "start_processes", "launch", "Pool", "Process", "Executor", "chosen",
    ]  # fmt: skip
    for line in lines:
        assert "CUDA is initialised in this process" in line
        assert "start_method='spawn' or 'forkserver'" in line
        assert "nothing was started" in line


NAMES = (
    BEGIN
    + """
    driver.cuInit(0)
    import importlib
    for name in sys.argv[2:]:
        importlib.import_module(name)
    print(nbmp.default_start_method().reason)
"""
)


def library(folder: Path, module: str, content: str = "") -> None:
    *packages, last = module.split(".")
    for package in packages:
        folder /= package
        folder.mkdir(exist_ok=True)
        (folder / "__init__.py").touch()
    (folder / f"{last}.py").write_text(content)


def test_library_that_initialised_cuda_is_named(tmp_path: Path) -> None:
    driver = str(fakecuda.build(tmp_path))
    library(tmp_path, "cupy")
    library(tmp_path, "torch.cuda", "def is_initialized(): return True")
    library(tmp_path, "jax")
    library(tmp_path, "numba.cuda.cudadrv.driver", "class driver: is_initialized = True")
    assert "(by CuPy)" in scripts.output(tmp_path, NAMES, driver, "cupy", "jax")
    assert "(by torch)" in scripts.output(tmp_path, NAMES, driver, "cupy", "torch.cuda")
    assert "(by numba)" in scripts.output(tmp_path, NAMES, driver, "cupy", "numba.cuda.cudadrv.driver")
    assert "(by JAX)" in scripts.output(tmp_path, NAMES, driver, "jax")


PRELOADED = """
    import sys
    import nbmp

    def touch(rank):
        import user_of_cuda
        user_of_cuda.touch()

    def other(rank):
        raise ValueError("of my own")

    nbmp.set_forkserver_preload(["user_of_cuda"])
    for function in (touch, other):
        try:
            nbmp.launch(function, start_method="forkserver")
        except nbmp.ProcessRaisedException as error:
            print(type(error.__cause__).__name__, "|", error.__cause__, "|", type(error.__cause__.__cause__).__name__)
"""

USER_OF_CUDA = """
import ctypes, os, sys
class CUDARuntimeError(RuntimeError): pass
driver = ctypes.CDLL(os.path.join(os.path.dirname(__file__), "libcuda.so.1"))
def touch():
    if driver.cuInit(0): raise CUDARuntimeError("cudaErrorInitializationError: initialization error")
if "nbmp.launching.server" in sys.modules:  # loaded ahead by the fork server
    touch()
"""


def test_rank_that_was_forked_after_cuda_was_initialised_is_told_so_when_it_touches_cuda(tmp_path: Path) -> None:
    fakecuda.build(tmp_path)
    (tmp_path / "user_of_cuda.py").write_text(USER_OF_CUDA)
    done = scripts.run(tmp_path, PRELOADED, env={"PYTHONPATH": f"{tmp_path}:{scripts.ROOT}"})
    touched, other = done.stdout.splitlines()
    assert touched.startswith("CudaForkError | CUDA was initialised (by ")
    assert "start_method='spawn'" in touched
    assert other == "ValueError | of my own | NoneType"


def test_its_error_survives_pickling() -> None:
    error = pickle.loads(pickle.dumps(nbmp.CudaForkError("why")))
    assert (type(error), str(error)) == (nbmp.CudaForkError, "why")
    assert isinstance(error, RuntimeError)
