"""What variables call the arrays of this process: also an array in a list, a dictionary, an object or a pandas frame.

One level deep, and a bounded number of things is looked at, so that it takes about a millisecond. Nothing is changed,
and none of the user's code runs, so any thread may look while another one computes. Hence `issubclass(type(x), ...)`,
since `isinstance` asks a proxy for its class, and `dict.items(x)`.
"""

import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

INSIDE = 100
"""So many things are looked at in one list, dictionary or object."""
LOOKS = 1000
"""And so many in all of them together."""


class NamedArray(NamedTuple):
    """An array that a variable holds."""

    name: str
    """As one would write it: `weights`, `batch[0]`, `frame['x']`."""
    shape: tuple[int, ...]
    dtype: str
    bytes: int
    """Of its elements."""
    start: int
    """The address of its first byte."""
    end: int
    """The address behind its last; beyond what `bytes` says if it has gaps."""


def named_arrays(names: Mapping[str, object]) -> list[NamedArray]:
    """Return the NumPy arrays that these variables hold, shared or not, in the order of the variables."""
    found: list[NamedArray] = []
    left = LOOKS
    for name, value in list(names.items()):
        if issubclass(type(value), np.ndarray):
            found += _described(name, value)
        elif left > 0:
            with suppress(Exception):  # it changed while it was looked at, or is not what it looks like
                for inner, thing in islice(_parts(name, value), min(left, INSIDE)):
                    left -= 1
                    if issubclass(type(thing), np.ndarray):
                        found += _described(inner, thing)
    return found


def _described(name: str, array: Any) -> Iterator[NamedArray]:
    plain = np.ndarray.view(array, np.ndarray) if type(array) is not np.ndarray else array
    if plain.size:
        address = plain.__array_interface__["data"][0]
        reach = [(extent - 1) * stride for extent, stride in zip(plain.shape, plain.strides, strict=True)]
        start = address + sum(step for step in reach if step < 0)
        end = address + sum(step for step in reach if step > 0) + plain.itemsize
        yield NamedArray(name, plain.shape, str(plain.dtype), plain.nbytes, start, end)


def _parts(name: str, value: Any) -> Iterator[tuple[str, object]]:
    """Return what there is inside, with its name."""
    kind = type(value)
    for sequence in (list, tuple):
        if issubclass(kind, sequence):
            for number, thing in enumerate(sequence.__iter__(value)):
                yield f"{name}[{number}]", thing
    if issubclass(kind, dict):
        for key, thing in dict.items(value):
            if type(key) in (str, int):
                yield f"{name}[{key!r}]", thing
    elif _is_pandas(kind):
        yield from _blocks(name, value)
    elif kind.__module__ == "__main__":
        for key, thing in object.__getattribute__(value, "__dict__").items():
            yield f"{name}.{key}", thing


def _is_pandas(kind: type) -> bool:
    pandas = sys.modules.get("pandas")
    return pandas is not None and issubclass(kind, (pandas.DataFrame, pandas.Series))


def _blocks(name: str, value: Any) -> Iterator[tuple[str, object]]:
    """Return the arrays behind a frame or series: asking a frame for a column changes what it remembers."""
    blocks = value._mgr.blocks
    for block in blocks:
        values = block.values[0] if value.ndim == 2 and len(block.values) == 1 else block.values.T  # a row is a column
        yield name if value.ndim == 1 or len(blocks) == 1 else f"{name}[{_columns(value, block)}]", values


def _columns(frame: Any, block: Any) -> str:
    columns = [repr(frame.columns[place]) for place in block.mgr_locs.as_array[:3]]
    if len(block.mgr_locs) == 1:
        return columns[0]
    return f"[{', '.join(columns)}{', ...' if len(block.mgr_locs) > 3 else ''}]"
