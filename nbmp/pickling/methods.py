"""Bound methods: by the name that finds them, where it does.

The standard library takes the name of the method's function for that of the method. A decorator that does not copy it,
a name with two underscores, `super().method` and a method that was assigned from elsewhere have another one, or it
finds another method: these travel as function and object.
"""

from types import MethodType
from typing import Any


def reduce_method(method: MethodType) -> tuple[Any, ...]:
    """Return what a method is made from again; looks at no attribute, which might run code of the user's."""
    function, owner = method.__func__, method.__self__
    name = getattr(function, "__name__", "")
    kind = owner if isinstance(owner, type) else type(owner)
    found = next((vars(base)[name] for base in kind.__mro__ if name in vars(base)), None)
    if getattr(found, "__func__", found) is function and name not in getattr(owner, "__dict__", ()):
        return getattr, (owner, name)
    return MethodType, (function, owner)
