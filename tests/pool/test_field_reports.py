"""B02, B06, B08, B23, B25: what users of pools met, as a notebook's cells and as scripts."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import scripts
from tests.field_reports.conftest import HELPERS
from tests.notebook.conftest import start
from tests.notebook.kernels import Kernel

pytestmark = pytest.mark.may_keep("descriptors")  # jupyter_client keeps an event loop in this process


# How workers start and how arrays are shared have nothing to do with each other: each once with the other's default.
@pytest.fixture(scope="module", params=["fork", "forkserver", "spawn", "fork+file_system"])
def way(request: pytest.FixtureRequest) -> tuple[str, str]:
    """Return a start method and a sharing strategy."""
    method, _, strategy = str(request.param).partition("+")
    return method, strategy or "file_descriptor"


def output(folder: Path, script: str, way: tuple[str, str]) -> str:
    """Return what the script prints; its argument is the start method."""
    method, strategy = way
    return scripts.output(folder, f"    import nbmp; nbmp.set_sharing_strategy({strategy!r})\n{script}", method)


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory, way: tuple[str, str]) -> Iterator[Kernel]:
    """One for all tests of a way, which leave no pool behind."""
    method, strategy = way
    kernel = start(tmp_path_factory.mktemp("pools"))
    try:
        kernel.run(f"{HELPERS}\nmp.set_sharing_strategy({strategy!r})")
        kernel.run(
            f"import functools; from nbmp.pool import Pool as P; Pool = functools.partial(P, start_method={method!r})"
        )
        yield kernel
    finally:
        kernel.close()
        assert not kernel.left_behind()


def test_b02_function_defined_after_the_pool_and_task_that_cannot_be_rebuilt(kernel: Kernel) -> None:
    kernel.run("pool = Pool(2)")
    kernel.run("def sq(x): return x * x\nassert pool.map_async(sq, range(4)).get(timeout=20) == [0, 1, 4, 9]")
    kernel.run("""
class Trap:
    def __reduce__(self): return (int, ('not a number',))
must_raise(lambda: pool.map_async(sq, [Trap()]).get(timeout=10), 'not a number')
assert pool.map_async(sq, [5]).get(timeout=10) == [25]
assert pool._workers.started == 2
pool.close(); pool.join()
""")


def test_b08_the_stop_button_and_the_pool_afterwards(kernel: Kernel) -> None:
    kernel.run("pool = Pool(2); pids = pool._workers.pids()")
    kernel.run("while not all(worker.ready for worker in pool._workers._workers): time.sleep(0.01)")
    cell = kernel.start("print('go', flush=True); pool.map(time.sleep, [60] * 4)")
    kernel.until(lambda: "go" in cell.text(), "the cell runs")
    time.sleep(1)
    pressed = time.monotonic()
    kernel.interrupt()
    kernel.until(lambda: bool(cell.ended), "the interrupted cell is done")
    assert cell.ended - pressed < 2
    assert cell.of("error")[0].content["ename"] == "KeyboardInterrupt"
    assert cell.error.endswith("KeyboardInterrupt: " + LOST)
    kernel.run("assert pool.apply_async(abs, (-1,)).get(timeout=5) == 1; assert gone(pids, 5)")
    kernel.run("pool.terminate()")


LOST = "the tasks of this call are lost: their workers were stopped and replaced; the pool goes on"


def test_error_of_a_task_shows_cells_by_name_and_hides_most_frames_of_the_pool(kernel: Kernel) -> None:
    kernel.run("def divide(x): return 1 / x\npool = Pool(1)")
    cell = kernel.run("pool.map(divide, [0])", fails=True)
    kernel.run("pool.terminate()")
    assert re.search(r"Cell In\[\d+\], line 1, in divide\n", cell.error)
    assert "ipykernel_" not in cell.error
    assert "nbmp/pool.py" not in cell.error


def test_output_of_tasks_comes_in_the_cell_that_made_the_pool(kernel: Kernel) -> None:
    cell = kernel.run("with Pool(1) as pool: print(pool.map(print, ['hello']))")
    assert "hello" in cell.text()


B06 = """
    import ctypes, os, signal, sys, time
    from nbmp.pool import Pool
    def die(how):
        if how == 'exit': os._exit(3)
        if how == 'kill': os.kill(os.getpid(), signal.SIGKILL)
        if how == 'segv': ctypes.string_at(0)
        return how
    for how, text in (('exit', 'exit code 3'), ('kill', 'memory'), ('segv', 'SIGSEGV')):
        pool = Pool(2, start_method=sys.argv[1])
        begun = time.monotonic()
        try:
            pool.map_async(die, [how, 'ok'], chunksize=1).get(timeout=15)
        except Exception as error:
            assert text in str(error), error
            assert time.monotonic() - begun < 5
        else:
            raise AssertionError("nothing raised")
        begun = time.monotonic()
        pool.terminate(); pool.join()
        assert time.monotonic() - begun < 5
    print("good")
"""


def test_b06_a_worker_is_killed(way: tuple[str, str], tmp_path: Path) -> None:
    assert output(tmp_path, B06, way).endswith("good\n")


B23 = """
    import importlib, sys, time
    from nbmp.pool import Pool
    scale = 1
    def inner(x): return scale * x
    def g(x): return ('v1', inner(x))
    pool = Pool(2, start_method=sys.argv[1]); assert pool.map(g, [1]) == [('v1', 1)]
    scale = 10
    def inner(x): return scale * x + 0.5
    def g(x): return ('v2', inner(x))
    assert pool.map(g, [1]) == [('v2', 10.5)]
    sys.dont_write_bytecode = True
    open('tool_b23.py', 'w').write('def v(): return "old"\\n')
    import tool_b23
    assert pool.apply(tool_b23.v) == 'old'
    def uses(_): return tool_b23.v()
    assert pool.map(uses, range(8), 1) == ['old'] * 8
    open('tool_b23.py', 'w').write('def v(): return "newer"\\n')
    importlib.reload(tool_b23)
    assert pool.apply(tool_b23.v) == 'newer'
    assert pool.map(uses, range(8), 1) == ['newer'] * 8
    assert 3 <= pool._workers.started <= 4  # each of the two at most once, when it is needed again
    print("good")
"""


def test_b23_a_living_pool_runs_todays_code(way: tuple[str, str], tmp_path: Path) -> None:
    assert output(tmp_path, B23, way) == "good\n"


B25 = """
    import sys, threading
    from nbmp.pool import Pool
    class SimError(Exception):
        def __init__(self, step, reason): super().__init__(f'{reason} at step {step}')
    class Locky(Exception):
        def __init__(self): super().__init__('has a lock'); self.l = threading.Lock()
    def boom(x):
        if x == 2: raise Locky()
        raise SimError(x, 'diverged')
    pool = Pool(2, start_method=sys.argv[1])
    for x, text in ((1, 'diverged at step 1'), (2, 'has a lock')):
        try:
            pool.apply_async(boom, (x,)).get(timeout=10)
        except Exception as error:
            assert text in str(error), error
            assert isinstance(error, SimError) == (x == 1)
    assert pool.apply_async(abs, (-3,)).get(timeout=10) == 3
    assert pool._workers.started == 2
    pool.terminate(); pool.join()
    print("good")
"""


def test_b25_exceptions_that_cannot_be_rebuilt(way: tuple[str, str], tmp_path: Path) -> None:
    assert output(tmp_path, B25, way) == "good\n"


GLOBALS = """
    import sys
    from nbmp.pool import Pool
    model = None
    def begin(value):
        global model, other
        model, other = value, value + 1
    def helper(x): return model * x
    def work(x): return helper(x) + other
    class Callable:
        def __call__(self, x): return work(x)
    with Pool(2, begin, (10,), start_method=sys.argv[1]) as pool:
        assert pool.map(work, [1, 2]) == [21, 31]
        assert pool.map(Callable(), [1, 2]) == [21, 31]
        assert pool.apply(lambda: model) == 10
        assert model is None
    print("good")
"""


def test_what_an_initializer_assigned_is_there_for_every_task(way: tuple[str, str], tmp_path: Path) -> None:
    assert output(tmp_path, GLOBALS, way) == "good\n"


CLASSES = """
    import sys
    from nbmp.pool import Pool
    from nbmp.executor import ProcessPoolExecutor
    class Point:
        def __init__(self, x): self.x = x
    def make(x): return Point(x)
    with Pool(2, start_method=sys.argv[1]) as pool:
        assert all(type(point) is Point for point in pool.map(make, range(4)))
        assert pool.map(lambda point: point.x, [Point(3)]) == [3]
    with ProcessPoolExecutor(2, start_method=sys.argv[1]) as executor:
        assert type(executor.submit(make, 1).result()) is Point
    print("good")
"""


def test_instances_of_the_users_classes_come_back_as_such(way: tuple[str, str], tmp_path: Path) -> None:
    assert output(tmp_path, CLASSES, way) == "good\n"
