"""What is done in the other process. In a module of its own, so that every start method finds it by name."""

from __future__ import annotations

from typing import Any

import numpy as np


def mask_and_set(array: Any) -> Any:
    """Mask the first element, unmask and set the second, and tell what kind of array it is."""
    array[0] = np.ma.masked
    array[1] = 20
    return type(array), float(array.fill_value), array.hardmask, array.dtype


def set_cells(frame: Any) -> Any:
    """Set a cell in each column and return the frame."""
    for number, column in enumerate(frame.columns):
        frame.loc[number, column] = 100 + number
    return frame


def set_item(series: Any) -> Any:
    """Set the third item and return the series."""
    series.loc[2] = 9
    return series
