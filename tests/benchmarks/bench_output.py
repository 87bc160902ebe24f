"""What printing costs a rank, and how soon a person sees the first line. In a real kernel, against the plain cell.

300 lines       in the rank of a cell, in a forked child that prints through the kernel's own stream, and in the kernel
flood           16 ranks that print for 5 s: lines, growth of the kernel, longest pause of its main thread, messages
progress        a step of `nbmp.progress` in a rank
first line      from sending a `%%mpspawn -n 4` cell until its first line arrives, against an empty cell's round trip
"""

import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.notebook.kernels import Kernel

PRINTS = """
import time
def prints():
    begun = time.perf_counter()
    for i in range(300): print('line', i)
    return (time.perf_counter() - begun) * 1000
"""
FORKED = """
import multiprocessing
context = multiprocessing.get_context('fork')
queue = context.SimpleQueue()
def child(): queue.put(prints())
process = context.Process(target=child); process.start(); found = queue.get(); process.join(); found
"""
FLOOD = """
import nbmp, psutil, time
def flood(rank):
    end, count = time.monotonic() + 5, 0
    while time.monotonic() < end:
        for _ in range(100): print(f'R{rank}:{count}:' + 'x' * 60); count += 1
    return count
def steps(rank):
    begun = time.perf_counter()
    for _ in nbmp.progress(range(1_000_000)): pass
    return time.perf_counter() - begun
"""
FLOODED = """
before = most = psutil.Process().memory_info().rss
launch = nbmp.start_processes(flood, nprocs=16, join=False)
longest = 0
while not launch.finished.is_set():
    begun = time.monotonic(); time.sleep(0.001); longest = max(longest, time.monotonic() - begun)
    most = max(most, psutil.Process().memory_info().rss)
sum(launch.results), (most - before) / 1e6, longest * 1000
"""


def flood(kernel: Kernel) -> None:
    kernel.run(FLOOD)
    cell = kernel.run(FLOODED)
    lines, grown, longest = map(float, (cell.value or "").strip("()").split(","))
    verdict = "ok" if grown <= 50 else "MISSED"
    print(
        f"16 ranks that print for 5 s\n  {lines:,.0f} lines, kernel grown by {grown:.1f} MB ({verdict}), longest pause "
        f"of its main thread {longest:.0f} ms, {len(cell.messages)} messages"
    )
    seconds = value(kernel, "nbmp.launch(steps)")
    print(f"a step of nbmp.progress in a rank\n  {seconds * 1000:.0f} ns  {'ok' if seconds <= 1 else 'MISSED'}")


def value(kernel: Kernel, code: str) -> float:
    return float((kernel.run(code).value or "nan").strip("[]"))


def first_line(kernel: Kernel, method: str) -> float:
    cell = kernel.start(f"%%mpspawn -n 4 --start-method {method}\nprint('here')")
    kernel.until(lambda: bool(cell.ended), "the cell is done")
    return (cell.of("stream")[0].when - cell.started) * 1000


def empty(kernel: Kernel) -> float:
    cell = kernel.run("pass")
    return (cell.ended - cell.started) * 1000


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        kernel = Kernel(folder, dict(os.environ))
        try:
            kernel.run("%load_ext nbmp")
            kernel.run(PRINTS)
            print("300 print() calls, ms in the printing process, medians of 5")
            for label, code in (
                ("rank of a cell", "%%mpspawn -n 1\nprints()"),
                ("forked child, kernel's stream", FORKED),
                ("kernel", "prints()"),
            ):
                figures = [value(kernel, code) for _ in range(5)]
                verdict = ("ok" if statistics.median(figures) <= 5 else "MISSED") if label == "rank of a cell" else ""
                print(f"  {label:32s}{statistics.median(figures):9.2f}  {verdict}")
            flood(kernel)
            print("first line of a %%mpspawn -n 4 cell, ms from sending the cell, medians of 10")
            base = statistics.median(empty(kernel) for _ in range(10))
            for method in ("fork", "forkserver", "spawn"):
                first_line(kernel, method)
                figure = statistics.median(first_line(kernel, method) for _ in range(10))
                verdict = ("ok" if figure - base <= 100 else "MISSED") if method == "fork" else ""
                print(
                    f"  {method:12s}{figure:9.1f}   empty cell {base:7.1f}   beyond it {figure - base:7.1f}  {verdict}"
                )
                time.sleep(0.1)
        finally:
            kernel.close()


if __name__ == "__main__":
    main()
