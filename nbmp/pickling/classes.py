"""Classes by value, where cloudpickle's way is not enough: slots, and hooks that run when a class is made.

cloudpickle makes an empty class on the other side and then sets its attributes one by one. That class has no slots, so
its instances have a dictionary that those of the original have not: they cannot be sent back. And whatever the user has
run when a class is made (`__init_subclass__` of a base, the metaclass) is run once more, for a class that has nothing
yet, without the arguments that it was made with. So here the empty class gets its slots, and no hook is called that
travels by value itself: what it did is in the attributes, and in those of the other objects that travel along.
"""

import contextlib
import os
import sys
import threading
import types
from collections.abc import Iterator, Sequence
from typing import Any

from cloudpickle import cloudpickle as cloud

Reduced = tuple[Any, ...]
_one_at_a_time = threading.RLock()
_BY_ITSELF = ("__dict__", "__weakref__")
"""What a class without slots has as well."""


def faithful(kind: type, reduced: Reduced) -> Reduced:
    """Return what cloudpickle has made of a class, with its slots and without the hooks."""
    make, (metaclass, name, bases, namespace, tracker, *more), (attributes, *others), *rest = reduced
    if "__slots__" in attributes:
        slots = _slots(kind)
        namespace = {**namespace, "__slots__": slots}
        attributes = {key: value for key, value in attributes.items() if key not in slots}
    maker, quiet = _maker(metaclass), _by_value(_above(kind.__mro__[1:], "__init_subclass__"))
    if quiet or maker is not metaclass:
        return empty_class, (metaclass, maker, name, bases, namespace, tracker, quiet), (attributes, *others), *rest
    return make, (metaclass, name, bases, namespace, tracker, *more), (attributes, *others), *rest


def empty_class(
    metaclass: Any,
    maker: Any,
    name: str,
    bases: tuple[Any, ...],
    namespace: dict[str, Any],
    tracker: str | None,
    quiet: bool,
) -> Any:
    """Return a class that has nothing yet, or the one that was made for this `tracker` before.

    Parameters
    ----------
    maker
        The metaclass above `metaclass` that is not the user's.
    quiet
        No `__init_subclass__` is called.
    """
    resolved = types.resolve_bases(bases)
    if resolved is not bases:
        namespace = {**namespace, "__orig_bases__": bases}
    with _quiet(resolved) if quiet else contextlib.nullcontext():
        made = maker.__new__(metaclass, name, resolved, dict(namespace))
    return cloud._lookup_class_or_track(tracker, made)


def name_classes() -> None:
    """Let this process and those that it will fork know the classes of `__main__` as the same ones.

    Each gets the name under which cloudpickle recognises it, while there is one process to give it.
    """
    waiting, seen = [vars(sys.modules["__main__"])], set[int]()
    while waiting:
        for value in list(waiting.pop().values()):
            if issubclass(type(value), type) and vars(value).get("__module__") == "__main__" and id(value) not in seen:
                seen.add(id(value))
                waiting.append(vars(value))
                with contextlib.suppress(Exception):  # a metaclass may refuse to have its classes compared
                    cloud._get_or_create_tracker_id(value)


@contextlib.contextmanager
def _quiet(bases: tuple[Any, ...]) -> Iterator[None]:
    """Make the `__init_subclass__` that these bases have do nothing, if it is the user's.

    There is none yet when the class and its base refer to each other, and the base is not complete.
    """
    owner: Any = _above([kind for base in bases for kind in base.__mro__], "__init_subclass__")
    if not _by_value(owner):
        yield
        return
    with _one_at_a_time:
        hook = vars(owner)["__init_subclass__"]
        owner.__init_subclass__ = classmethod(lambda cls, **_: None)
        try:
            yield
        finally:
            owner.__init_subclass__ = hook


def _slots(kind: type) -> tuple[str, ...]:
    """Return the names of the slots that a class adds, private ones as they are called in the end."""
    own = [name for name, value in vars(kind).items() if isinstance(value, types.MemberDescriptorType)]
    return (*own, *(name for name in _BY_ITSELF if name in vars(kind)))


def _maker(metaclass: type) -> type:
    """Return the first metaclass that makes classes and is not the user's."""
    others = [one for one in metaclass.__mro__ if not _by_value(one)]
    return metaclass if others[0] is metaclass else _above(others, "__new__")


def _above(kinds: Sequence[type], name: str) -> type:
    return next(kind for kind in kinds if name in vars(kind))


def _by_value(kind: type) -> bool:
    return not cloud._should_pickle_by_reference(kind)


def _in_forked_child() -> None:
    global _one_at_a_time
    _one_at_a_time = threading.RLock()


os.register_at_fork(after_in_child=_in_forked_child)
