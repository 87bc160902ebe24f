"""Make a page of tables and plots from what the benchmarks kept: `report.py FOLDER`, at the end of `dev.py bench`."""

from __future__ import annotations

import math
import os
import platform
import re
import sys
from importlib.metadata import PackageNotFoundError, version
from itertools import groupby
from pathlib import Path

import matplotlib as mpl

mpl.use("agg")
import matplotlib.pyplot as plt
from matplotlib.ticker import FuncFormatter, NullFormatter

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.benchmarks.record import Figure, kept

COLOURS = {"nbmp": "#4c8bf5", "multiprocessing": "#9aa0a6", "torch": "#e8710a", "copy": "#d7dade"}
HEAD = """\
# Measurements

`python3 dev.py bench --torch` measures this anew, on your machine, and writes this page and its plots to
`artefacts/bench`; what it prints beside has nbmp's own targets and says which are missed. Both sides are measured in
turn in one run, and a figure is the median of the rounds.

Measured on {machine}, with {versions}.
"""


def machine() -> str:
    text = Path("/proc/cpuinfo").read_text()
    model = re.search(r"model name\s*: (.*)", text)
    pages, size = os.sysconf("SC_PHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
    load = os.getloadavg()[2]
    return (
        f"{os.cpu_count()} cores of {model[1] if model else platform.machine()}, {pages * size >> 30} GB of memory, "
        f"Linux {platform.release().split('-')[0]}; load during the last 15 minutes: {load:.1f}"
    )


def versions() -> str:
    found = [f"Python {platform.python_version()}"]
    for name in ("nbmp", "numpy", "torch"):
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            found.append(f"no {name}")
    return ", ".join(found)


def shown(seconds: float | None) -> str:
    if seconds is None:
        return ""
    return f"{seconds * 1e3:.1f} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.0f} µs"


def table(figures: list[Figure]) -> str:
    sides = list(dict.fromkeys(side for figure in figures for side in figure.seconds))
    rows = [["", *sides], ["---"] * (1 + len(sides))]
    rows += [[figure.name, *(shown(figure.seconds.get(side)) for side in sides)] for figure in figures]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def plot(chart: str, figures: list[Figure], path: Path) -> None:
    """Draw a group of bars for each figure, on a scale of powers of ten."""
    sides = list(dict.fromkeys(side for figure in figures for side in figure.seconds))
    fig, axis = plt.subplots(figsize=(8, 0.6 + 0.26 * len(figures) * (len(sides) + 0.8)))
    step = len(sides) + 0.8
    for place, side in enumerate(sides):
        having = [
            (number * step + place, figure.seconds[side])
            for number, figure in enumerate(figures)
            if side in figure.seconds
        ]
        places, values = zip(*having, strict=True)
        bars = axis.barh(places, [value * 1e3 for value in values], 0.9, label=side, color=COLOURS.get(side))
        axis.bar_label(bars, [shown(value) for value in values], padding=3, fontsize=8)
    axis.set_yticks([number * step + (len(sides) - 1) / 2 for number in range(len(figures))], [f.name for f in figures])
    axis.invert_yaxis()
    axis.set_xscale("log")
    fastest = min(min(figure.seconds.values()) for figure in figures) * 1e3
    slowest = max(max(figure.seconds.values()) for figure in figures) * 1e3
    axis.set_xlim(10 ** math.floor(math.log10(fastest)), 2 * slowest)
    axis.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g} ms"))
    axis.xaxis.set_minor_formatter(NullFormatter())
    axis.set_xlabel("less is better")
    axis.set_title(chart, loc="left", fontsize=11)
    axis.spines[["top", "right"]].set_visible(False)
    axis.legend(frameon=False, fontsize=8)
    fig.savefig(path, bbox_inches="tight", dpi=120)
    plt.close(fig)


def main(folder: Path) -> None:
    parts = [HEAD.format(machine=machine(), versions=versions())]
    (folder / "images" / "bench").mkdir(parents=True, exist_ok=True)
    for number, (chart, group) in enumerate(groupby(kept(folder), lambda figure: figure.chart)):
        figures = list(group)
        picture = f"images/bench/{number}.png"
        plot(chart, figures, folder / picture)
        parts.append(f"## {chart}\n\n![{chart}]({picture})\n\n{table(figures)}\n")
    (folder / "benchmarks.md").write_text("\n".join(parts))
    print(f"{folder / 'benchmarks.md'} has the tables and plots")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
