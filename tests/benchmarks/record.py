"""Figures that are kept for the page of measurements: `report.py` makes tables and plots of them.

A benchmark that is run by itself only prints. Under `dev.py bench` the variable NBMP_BENCH names a folder, and each
figure is a line of JSON in a file of the benchmark's name there.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True)
class Figure:
    """How long the same thing took each side, in seconds."""

    chart: str
    name: str
    seconds: dict[str, float]


def keep(chart: str, name: str, **seconds: float) -> None:
    """Keep what was measured; sides are named by the keywords."""
    if folder := os.environ.get("NBMP_BENCH"):
        path = Path(folder) / f"{Path(sys.argv[0]).stem}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a") as lines:
            print(json.dumps(asdict(Figure(chart, name, seconds))), file=lines)


def kept(folder: Path) -> list[Figure]:
    """Return all figures in a folder, benchmark by benchmark."""
    lines = [line for path in sorted(folder.glob("*.jsonl")) for line in path.read_text().splitlines()]
    return [Figure(**json.loads(line)) for line in lines]
