"""Arrays of every dtype that has a fixed size, in every layout that NumPy knows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

SHAPE = (4, 6, 2)

DTYPES: dict[str, Any] = {
    **{code: code for code in ("?", "i1", "u2", "i4", "u8", "f2", "f4", "f8", "c8", "c16")},
    "longdouble": np.longdouble,
    "clongdouble": np.clongdouble,
    **{code: code for code in (">i2", ">f8", ">c16", ">U3", ">M8[s]")},
    **{code: code for code in ("M8[ns]", "M8[D]", "M8[25s]", "m8[us]", "m8")},
    **{code: code for code in ("U5", "S3", "V7")},
    "with metadata": np.dtype("f8", metadata={"unit": "m"}),
    "structured": [("t", "M8[s]"), ("v", ">f4", (2,)), ("name", "U4")],
    "nested": [("point", [("x", "f4"), ("y", "f4")]), ("is_set", "?")],
    "aligned": np.dtype([("a", "i1"), ("b", "f8")], align=True),
    "with titles and offsets": np.dtype(
        {"names": ["a", "b"], "formats": ["i4", "u1"], "titles": ["The a", None], "offsets": [4, 9], "itemsize": 16}
    ),
    "overlapping fields": np.dtype({"names": ["all", "low"], "formats": ["<u4", "<u2"], "offsets": [0, 0]}),
    "record": np.dtype((np.record, [("a", "i4"), ("b", "f8")])),
    "fields with metadata": np.dtype([("a", np.dtype("i4", metadata={"unit": "s"}))]),
}


def _read_only(array: Any) -> Any:
    view = array[1:3]
    view.flags.writeable = False
    return view


def _strided(array: Any, shape: tuple[int, ...], strides: tuple[int, ...]) -> Any:
    """As `as_strided`, which takes some dtypes only."""
    return np.ndarray(shape, array.dtype, array.reshape(-1).view("u1"), 0, strides)


LAYOUTS: dict[str, Callable[[Any], Any]] = {
    "whole": lambda a: a,
    "slice": lambda a: a[1:3],
    "step": lambda a: a[::2, 1::3],
    "reversed": lambda a: a[::-1, ::-2],
    "transposed": lambda a: a.T,
    "axes turned": lambda a: a.transpose(1, 2, 0),
    "column": lambda a: a[:, 2, 1],
    "element": lambda a: a[1, 2, 1, ...],
    "nothing of it": lambda a: a[2:2],
    "no extent in the middle": lambda a: a[:, :0],
    "new axes": lambda a: a[None, :, None],
    "broadcast": lambda a: np.broadcast_to(a[0], (3, 6, 2)),
    "overlapping": lambda a: _strided(a, (3, 4), (a.strides[1], a.strides[1])),
    "sliding window": lambda a: _strided(a, (4, 4, 2, 3), (*a.strides, a.strides[1])),
    "read-only": _read_only,
    "read-only with a step": lambda a: _read_only(a)[:, ::2],
}


def filled(dtype: Any) -> Any:
    """Return a private array of `SHAPE` with values that differ."""
    array = np.zeros(SHAPE, dtype)
    _fill(array)
    return array


def _fill(array: Any) -> None:
    if array.dtype.names:
        for name in array.dtype.names:
            _fill(array[name])
    elif array.dtype.char == "V":
        array[...] = np.frombuffer(bytes(range(7)), "V7")
    else:
        array[...] = (np.arange(array.size) % 100).reshape(array.shape).astype(array.dtype)


def layouts_of(array: Any) -> Iterator[Any]:
    """Return views in every layout."""
    for view in LAYOUTS.values():
        yield view(array)


def described(array: Any) -> tuple[Any, ...]:
    """Return all that must arrive, as values to compare."""
    kind = array.dtype
    about_dtype = (kind, kind.str, kind.type, kind.metadata, kind.isalignedstruct, fields(kind))
    return type(array), array.shape, array.flags.writeable, about_dtype, content(array)


def content(array: Any) -> Any:
    """Return its bytes, but those between fields, which nobody copies."""
    names = array.dtype.names
    return [content(array[name]) for name in names] if names else array.tobytes()


def fields(kind: Any) -> Any:
    """Return names, offsets, titles and metadata of a structured dtype."""
    if kind.fields is None:
        return None
    return {name: (field[0].str, field[0].metadata, *field[1:]) for name, field in kind.fields.items()}


def address(array: Any) -> int:
    """Return where its first element lies."""
    return int(array.__array_interface__["data"][0])
