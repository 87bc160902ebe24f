"""New shared arrays that are like another array: its shape, its dtype, the order of its axes in memory."""

from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from nbmp.memory.arrays import Shape, empty

Order = Literal["K", "A", "C", "F"]


def empty_like(
    prototype: ArrayLike, dtype: DTypeLike | None = None, order: Order = "K", *, shape: Shape | None = None
) -> NDArray[Any]:
    """Return a new shared array like `prototype`, with zeros in it (fresh memory always is).

    Parameters
    ----------
    prototype : array or what `numpy.asarray` takes; a subclass gives a plain array all the same
    dtype : data type, default that of the prototype
    order : {"K", "A", "C", "F"}
        As in NumPy: "K" keeps the order of the axes in memory, "A" is "F" for a Fortran contiguous prototype, else "C".
    shape : int or tuple of int, default that of the prototype
        With another number of dimensions, "K" is "C".

    Raises
    ------
    TypeError
        For a dtype that holds Python objects.
    SharedMemoryError
        When it is larger than the memory left.
    """
    like = np.asarray(prototype)
    kind = like.dtype if dtype is None else np.dtype(dtype)
    extents = like.shape if shape is None else (shape,) if isinstance(shape, int | np.integer) else tuple(shape)
    columns_first = like.flags.f_contiguous and not like.flags.c_contiguous
    if order not in ("K", "A", "C", "F"):
        raise ValueError(f"order must be one of 'K', 'A', 'C' and 'F', not {order!r}")
    keeps_axes = order == "K" and len(extents) == like.ndim
    if columns_first and (keeps_axes or order == "A"):
        order = "F"
    elif keeps_axes and not like.flags.c_contiguous:
        axes = sorted(range(like.ndim), key=lambda axis: -abs(like.strides[axis]))
        return empty(tuple(extents[axis] for axis in axes), kind).transpose(np.argsort(axes))
    return empty(extents, kind, order)  # which takes anything but "F" for "C"


def zeros_like(
    prototype: ArrayLike, dtype: DTypeLike | None = None, order: Order = "K", *, shape: Shape | None = None
) -> NDArray[Any]:
    """Return a new shared array of zeros like `prototype`; parameters and errors as for `empty_like`."""
    return empty_like(prototype, dtype, order, shape=shape)


def ones_like(
    prototype: ArrayLike, dtype: DTypeLike | None = None, order: Order = "K", *, shape: Shape | None = None
) -> NDArray[Any]:
    """Return a new shared array of ones like `prototype`; parameters and errors as for `empty_like`."""
    return full_like(prototype, 1, dtype, order, shape=shape)


def full_like(
    prototype: ArrayLike,
    fill_value: ArrayLike,
    dtype: DTypeLike | None = None,
    order: Order = "K",
    *,
    shape: Shape | None = None,
) -> NDArray[Any]:
    """Return a new shared array like `prototype`, dtype included, filled with `fill_value`; else as `empty_like`."""
    array = empty_like(prototype, dtype, order, shape=shape)
    array[...] = fill_value
    return array
