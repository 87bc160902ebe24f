"""Launching four ranks that do nothing, against multiprocessing's processes that do nothing, side by side in one run.

multiprocessing's processes have no channel, no lifeline and no pipes of their own. Its fork server is measured as it comes,
without preload. Both sides call a function of an importable module, so that neither has to ship code.
"""

import multiprocessing
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import nbmp
from noop import nothing

RANKS = 4
TARGETS = {"fork": ("at most", 2.0), "forkserver": ("at most", 0.25), "spawn": ("at most", 1.15)}


def ours(method: str) -> None:
    nbmp.start_processes(nothing, nprocs=RANKS, start_method=method)


def peers(method: str) -> None:
    context = multiprocessing.get_context(method)
    processes = [context.Process(target=nothing, args=(rank,)) for rank in range(RANKS)]  # type: ignore[attr-defined]
    for process in processes:
        process.start()
    for process in processes:
        process.join()


def seconds(function: Callable[[str], None], method: str) -> float:
    begun = time.perf_counter()
    function(method)
    return time.perf_counter() - begun


def main() -> None:
    print(f"{RANKS} ranks that do nothing, start to end; medians, Python {sys.version.split()[0]}")
    for method, rounds in (("fork", 40), ("forkserver", 20), ("spawn", 15)):
        ours(method), peers(method)  # warm: servers started, modules imported
        pairs = [(seconds(ours, method), seconds(peers, method)) for _ in range(rounds)]
        mine, theirs = (statistics.median(column) * 1000 for column in zip(*pairs, strict=True))
        ratio = statistics.median(a / b for a, b in pairs)
        word, target = TARGETS[method]
        verdict = "ok" if ratio <= target else "MISSED"
        print(f"{method:10s} nbmp {mine:7.1f} ms   multiprocessing {theirs:7.1f} ms   ratio {ratio:5.2f} ({word} {target}) {verdict}")


if __name__ == "__main__":
    main()
