"""Subclasses of ndarray as users write them. In a module, so that every start method finds them by name."""

from __future__ import annotations

from typing import Any

import numpy as np


class WithUnit(np.ndarray[Any, Any]):
    """Has an attribute, as NumPy's manual teaches, and no pickling of its own."""

    unit: Any

    def __new__(cls, array: Any, unit: Any = None) -> WithUnit:
        self = np.asarray(array).view(cls)
        self.unit = unit
        return self

    def __array_finalize__(self, other: Any) -> None:
        self.unit = getattr(other, "unit", None)


class PicklesItself(WithUnit):
    """Takes its attribute along by the recipe that everybody copies."""

    def __reduce__(self) -> Any:
        reduced: Any = super().__reduce__()
        function, arguments, state = reduced
        return function, arguments, (*state, self.unit)

    def __setstate__(self, state: Any) -> None:
        self.unit = state[-1]
        super().__setstate__(state[:-1])


class OwnMasked(np.ma.MaskedArray[Any, Any]):
    """A masked array of the user's."""
