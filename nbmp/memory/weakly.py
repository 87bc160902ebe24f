"""A table that does not keep its values alive, and calls no Python code when one dies.

`weakref.WeakValueDictionary` has a callback in Python: a KeyboardInterrupt that comes while it runs is printed and
lost. Here dead entries are swept out when the table has doubled.
"""

from collections.abc import Hashable
from typing import Generic, TypeVar
from weakref import ref

Value = TypeVar("Value")

_FEW = 64


class WeakTable(Generic[Value]):
    """Keys to values that live only as long as others refer to them."""

    def __init__(self) -> None:
        self._entries: dict[Hashable, ref[Value]] = {}
        self._sweep_at = _FEW

    def get(self, key: Hashable) -> Value | None:
        """Return the value, None when there is none any more."""
        entry = self._entries.get(key)
        return None if entry is None else entry()

    def put(self, key: Hashable, value: Value) -> Value:
        """Enter a value and return it."""
        if len(self._entries) >= self._sweep_at:
            self._entries = {key: entry for key, entry in list(self._entries.items()) if entry() is not None}
            self._sweep_at = max(_FEW, 2 * len(self._entries))
        self._entries[key] = ref(value)
        return value

    def values(self) -> list[Value]:
        """Return the values that live, in the order in which they were entered."""
        return [value for entry in list(self._entries.values()) if (value := entry()) is not None]

    def clear(self) -> None:
        self._entries = {}
