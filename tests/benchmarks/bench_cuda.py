"""A CuPy array's round trip through a queue, from `put` until the other process has answered, against torch's tensors.

Nothing is copied, so the time should not depend on the size. In one run, interleaved rounds, medians; a skip says why.
The array is there already; `steady` sends the same one again and again, `fresh` one that CuPy's pool gives anew.
"""

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import nbmp
from tests.benchmarks import sides
from tests.benchmarks.table import heading, interleaved, microseconds, row
from tests.conftest import why_no_gpu

ROUNDS = 5
COUNT = 50
MB, GB = 1 << 20, 1 << 30
SIZES = (MB, 16 * MB, 256 * MB, GB)


def ours(make: Callable[[int], Any]) -> sides.Side:
    requests, answers = nbmp.Queue(), nbmp.Queue()
    context = nbmp.start_processes(sides.answer_in_rank, (requests, answers), join=False, start_method="spawn")
    assert context is not None
    return sides.Side("nbmp", requests, answers, make, make, sides.ender(requests, context))


def torchs() -> sides.Side | None:
    """Return torch with CUDA, None where it is not installed or was built without."""
    if not sides.HAS_TORCH:
        return None
    import torch
    import torch.multiprocessing as module

    if not torch.cuda.is_available():
        return None
    context = module.get_context("spawn")
    requests, answers = context.Queue(), context.Queue()
    process = context.Process(target=sides.answer, args=(requests, answers))
    process.start()

    def make(size: int) -> Any:
        made = torch.ones(size, dtype=torch.uint8, device="cuda")
        torch.cuda.synchronize()
        return made

    return sides.Side("torch", requests, answers, make, make, sides.ender(requests, process))


def same(array: Any) -> Any:
    return array


def measure(mine: sides.Side, torch: sides.Side | None, kind: str) -> None:
    heading(f"arrays on a GPU, {kind}, round trip against torch's queue")
    times = []
    for size in SIZES:
        measures = []
        for side in filter(None, (mine, torch)):
            make = partial(same, side.private(size)) if kind == "steady" else partial(side.private, size)
            measures.append(partial(side.round_trip, make, COUNT))
        first, *rest = interleaved(measures, ROUNDS)
        times.append(first)
        name = f"{size // MB} MiB"
        if not rest:
            print(f"  {name:30s} {microseconds([('nbmp', first)])}", flush=True)
        for other in rest:
            row(name, microseconds([("nbmp", first), ("torch", other)]), first / other, 1, at_most=True)
    figures = microseconds([("fastest", min(times)), ("slowest", max(times))])
    row("flat from 1 MiB to 1 GiB", figures, max(times) / min(times), 1.5, at_most=True)


def main() -> None:
    reason = why_no_gpu()
    if reason is not None:
        print(f"nothing is measured: {reason}")
        return
    import cupy

    def make(size: int) -> Any:
        made = cupy.ones(size, cupy.uint8)
        cupy.cuda.runtime.deviceSynchronize()
        return made

    mine, torch = ours(make), torchs()
    if torch is None:
        print("torch with CUDA is not installed: no rows against it")
    for kind in ("steady", "fresh"):
        measure(mine, torch, kind)
    for side in filter(None, (mine, torch)):
        side.end()


if __name__ == "__main__":
    main()
