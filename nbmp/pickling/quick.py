"""The quick way out, for what passes through channels: the standard pickler, taught about arrays.

It pickles functions and classes by name, at a fifth of the cost of cloudpickle. An object that refers to `__main__`, or
that it cannot pickle, goes by value instead; so the difference is not to be seen from outside.
"""

import copyreg
import pickle
import sys
from collections.abc import Callable
from multiprocessing import context as mp_context
from multiprocessing.reduction import ForkingPickler
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

from nbmp.memory.strategy import goes_by_name
from nbmp.pickling.foreign import reducers
from nbmp.pickling.leaving import SPAWNING, dumps
from nbmp.pickling.luggage import Luggage
from nbmp.pickling.methods import reduce_method
from nbmp.pickling.parcel import Parcel, Pieces, pack

_MAIN = b"__main__"
_SIMPLE = frozenset({int, float, complex, bool, str, type(None)})
_CONTAINERS = (dict, list, tuple)
_FEW = 32
"""So many items of a container are looked at: a record or a row."""
_taught: dict[Any, Any] = {}
_taught_from = (-1, -1, -1, False)
_array: type | None = None
_lone: Callable[[Any], Parcel | None]
"""`numpy.ndarray` and how to send one by itself, once NumPy is there."""


Fields = Callable[..., tuple[Any, ...]]


def snapshot(
    obj: Any, *, name: str = "object", fields: Fields | None = None, to_main: bool = False, recycled: bool = True
) -> Parcel:
    """Return `obj` as it is now, as a parcel for one receiver. Errors and `to_main` as for `leaving.dumps`.

    `fields` is a named tuple's class: how an error names the parts of `obj`, which is a tuple. It does not travel.
    """
    return to_send(obj, name=name, fields=fields, to_main=to_main, recycled=recycled).settled()


def to_send(
    obj: Any, *, name: str = "object", fields: Fields | None = None, to_main: bool = False, recycled: bool = True
) -> Parcel:
    """As `snapshot`, but small arrays are not copied yet: send it, or settle it, before the caller can change them."""
    kind = type(obj)
    if fields is not None:
        at_once = _at_once(obj)
        if at_once is not None:
            return pack((at_once,), (), (), recycled=recycled)
    elif kind in _SIMPLE or (kind in _CONTAINERS and _is_simple(obj)):
        return pack((pickle.dumps(obj, 5),), (), (), recycled=recycled)
    table = _table()
    if recycled and kind is _array:
        parcel = _lone(obj)
        if parcel is not None:
            return parcel
    pickled, luggage = Pieces(), Luggage(to_main)
    pickler = pickle.Pickler(pickled, 5, buffer_callback=luggage.take_buffer)
    pickler.dispatch_table = table
    before = mp_context.get_spawning_popen()
    try:
        SPAWNING.spawning_popen = luggage
        pickler.dump(obj)
    except MemoryError:
        raise
    except Exception:
        return dumps(fields(*obj) if fields else obj, name=name, to_main=to_main, recycled=recycled)
    finally:
        SPAWNING.spawning_popen = before
    if pickled.mention(_MAIN):
        return dumps(obj, name=name, to_main=to_main, recycled=recycled)
    return pack(pickled, luggage.buffers, luggage.owners, recycled=recycled)


def _is_simple(items: Any) -> bool:
    """Return whether all in it is simple, so that nobody need be taught to pickle it."""
    if len(items) > _FEW or not _SIMPLE.issuperset(map(type, items)):
        return False
    return type(items) is not dict or _SIMPLE.issuperset(map(type, items.values()))


def _at_once(parts: tuple[Any, ...]) -> bytes | None:
    """Return the pickle of what nobody need be taught to pickle, else None."""
    if not all(map(_is_known, parts)):
        return None
    try:
        pickled = pickle.dumps(parts, 5)
    except Exception:  # of a function that is not to be found by its name
        return None
    return None if _MAIN in pickled else pickled


def _is_known(part: Any) -> bool:
    """Return whether a part of a task is simple, or a function of a module."""
    kind = type(part)
    if kind is FunctionType:
        return bool(part.__module__ != "__main__")
    if kind is BuiltinFunctionType:
        return type(part.__self__) is ModuleType
    return kind in _SIMPLE or (kind in _CONTAINERS and _is_simple(part))


def get_ready() -> None:
    """Import what messages need, in the thread that makes a queue or a pipe.

    A module that another thread is importing at the moment of a fork can never be imported by the child: Python waits
    for that thread, which the child does not have.
    """
    _table()
    if goes_by_name():
        import nbmp.pickling.names  # noqa: F401 - for those who send


def _table() -> dict[Any, Any]:
    """Return what the pickler is taught: the standard library's reducers, and arrays."""
    global _taught, _taught_from, _array, _lone
    forking = ForkingPickler._extra_reducers  # type: ignore[attr-defined]  # no public way to what it was taught
    others = reducers()
    now = (len(forking), len(copyreg.dispatch_table), len(others), "numpy" in sys.modules)
    if now != _taught_from:
        _taught = {**copyreg.dispatch_table, **forking, MethodType: reduce_method, **others}
        if "numpy" in sys.modules:
            from nbmp.pickling.arrays import ReducerTable, reduce_array
            from nbmp.pickling.lone import parcel_of

            _array, _lone = sys.modules["numpy"].ndarray, parcel_of
            _taught = ReducerTable(_taught)
            _taught[_array] = reduce_array
        _taught_from = now
    return _taught
