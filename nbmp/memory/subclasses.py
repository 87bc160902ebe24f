"""Subclasses of ndarray: taken apart into a plain array, which memory knows about, and the rest.

plain array     over the same memory
class           `np.matrix`, `np.recarray`, `np.ma.MaskedArray`, the user's
attributes      what its `__dict__` has: of a masked array the mask, which is another array, and the fill value
"""

import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray


def is_masked_array(array: object) -> bool:
    """Return whether it is a `numpy.ma.MaskedArray`; that module is not loaded by asking."""
    module = sys.modules.get("numpy.ma")
    return module is not None and isinstance(array, module.MaskedArray)


def taken_apart(array: NDArray[Any]) -> tuple[NDArray[Any], dict[str, Any]]:
    """Return the plain array and the attributes. Those of a `np.memmap` belong to its file and stay behind."""
    attributes = {} if isinstance(array, np.memmap) else dict(getattr(array, "__dict__", ()))
    return np.ndarray.view(array, np.ndarray), attributes


def put_together(plain: NDArray[Any], kind: type[NDArray[Any]], attributes: dict[str, Any]) -> NDArray[Any]:
    """Return an array of class `kind` over the memory of `plain`."""
    array = np.ndarray.view(plain, kind)
    if attributes:
        array.__dict__.update(attributes)
    return array
