"""Launching four ranks that do nothing, against multiprocessing's processes that do nothing, side by side in one run.

multiprocessing's processes have no channel, no lifeline and no pipes of their own. Its fork server is measured as it
comes, without preload. Both sides call a function of an importable module, so that neither has to ship code: of one
that imports NumPy, as a module with anything to do with arrays does (the targets are for that), and of one that
imports nothing.
"""

import multiprocessing
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import nbmp
from tests.benchmarks.record import keep

RANKS = 4
CHART = f"Starting {RANKS} ranks that do nothing, to their end"
TARGETS = {"fork": 2.0, "forkserver": 0.25, "spawn": 1.15}
Task = Callable[[int], None]


def ours(method: str, nothing: Task) -> None:
    nbmp.start_processes(nothing, nprocs=RANKS, start_method=method)


def peers(method: str, nothing: Task) -> None:
    context = multiprocessing.get_context(method)
    processes = [context.Process(target=nothing, args=(rank,)) for rank in range(RANKS)]  # type: ignore[attr-defined]
    for process in processes:
        process.start()
    for process in processes:
        process.join()


def seconds(function: Callable[[str, Task], None], method: str, nothing: Task) -> float:
    begun = time.perf_counter()
    function(method, nothing)
    return time.perf_counter() - begun


def main() -> None:
    from tests.benchmarks import bare, noop  # here: multiprocessing imports this file again in its children

    print(f"{RANKS} ranks that do nothing, start to end; medians, Python {sys.version.split()[0]}")
    for module in (noop, bare):
        print(f"of a module that {'imports NumPy' if module is noop else 'imports nothing'}")
        for method, rounds in (("fork", 40), ("forkserver", 20), ("spawn", 10)):
            ours(method, module.nothing)  # warm: servers started, modules imported
            peers(method, module.nothing)
            pairs = [
                (seconds(ours, method, module.nothing), seconds(peers, method, module.nothing)) for _ in range(rounds)
            ]
            mine, theirs = (statistics.median(column) * 1000 for column in zip(*pairs, strict=True))
            ratio = statistics.median(a / b for a, b in pairs)
            name = f"{method}, {'imports NumPy' if module is noop else 'imports nothing'}"
            keep(CHART, name, nbmp=mine / 1000, multiprocessing=theirs / 1000)
            verdict = "ok" if ratio <= TARGETS[method] else "MISSED"
            print(
                f"  {method:10s} nbmp {mine:7.1f} ms   multiprocessing {theirs:7.1f} ms   "
                f"ratio {ratio:5.2f} (at most {TARGETS[method]}) {verdict}"
            )


if __name__ == "__main__":
    main()
