"""The printed table: a figure, its target beside it, and whether the target is met."""

import os
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any


def heading(title: str) -> None:
    """Print a title with what the figures depend on: how busy the machine is."""
    load = " ".join(f"{figure:.1f}" for figure in os.getloadavg())
    print(f"\n{title} (load {load}, {os.cpu_count()} cores)", flush=True)


def row(name: str, figures: str, value: float, target: float, unit: str = "", *, at_most: bool = False) -> None:
    """Print a row; `value` has to be at least `target`, or at most."""
    met = value <= target if at_most else value >= target
    bound = f"{'<=' if at_most else '>='} {target:g}{unit}"
    print(f"  {name:30s} {figures:64s} {value:8.2f}{unit}  target {bound:12s} {'met' if met else 'MISSED'}", flush=True)


def interleaved(measures: Sequence[Callable[[], float]], rounds: int) -> list[float]:
    """Return the median of each measure, all of them taken in turn in every round."""
    columns: list[list[float]] = [[] for _ in measures]
    for _ in range(rounds):
        for column, measure in zip(columns, measures, strict=True):
            column.append(measure())
    return [statistics.median(column) for column in columns]


def seconds(action: Callable[..., Any], *arguments: Any) -> float:
    """Return how long a call takes."""
    begun = time.perf_counter()
    action(*arguments)
    return time.perf_counter() - begun


def microseconds(figures: Sequence[tuple[str, float | None]]) -> str:
    """Return times, given in seconds, side by side."""
    return "  ".join(f"{name} {'-' if time is None else f'{time * 1e6:.0f}'} us" for name, time in figures)
