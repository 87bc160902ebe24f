"""The sending side: an object becomes a parcel.

functions, classes and closures of `__main__` and of cells    by value (cloudpickle), those of `functools.cache` too
shared arrays                                                 by handle: a place in a segment, the descriptor goes along
other buffers above 64 kB                                     copied once into the parcel's payload
everything that the standard library teaches ForkingPickler   as there (connections, locks, queues of its own)
IPython's shell and its `exit`                                as what they are in a rank
"""

import functools
import io
import linecache
import os
import sys
import traceback
import types
from collections import ChainMap
from collections.abc import Callable
from multiprocessing import context as mp_context
from multiprocessing.reduction import ForkingPickler
from typing import Any, ClassVar

import cloudpickle
from cloudpickle import cloudpickle as cloud

from nbmp.errors import CannotTravelError
from nbmp.pickling import strangers
from nbmp.pickling.classes import faithful
from nbmp.pickling.diagnosis import find_culprit
from nbmp.pickling.foreign import reducers
from nbmp.pickling.luggage import Luggage
from nbmp.pickling.methods import reduce_method
from nbmp.pickling.parcel import Parcel, Pieces, pack
from nbmp.pickling.rebuilding import cached, code_of_file, exception, exception_state, main_class

SPAWNING: Any = mp_context._tls  # type: ignore[attr-defined]  # `set_spawning_popen` is a call
"""Where the standard library's objects look for the child that is spawned: only then do they hand out descriptors.

Set as an attribute: an interrupt that came when the call that takes it back has begun would leave it there.
"""

_PICKLERS = ("nbmp", "cloudpickle", "pickle", "copyreg", "multiprocessing")

Reduced = tuple[Callable[..., Any], tuple[Any, ...]]


def dumps(
    obj: Any, *, name: str = "object", to_main: bool = False, recycled: bool = False, farewell: bool = False
) -> Parcel:
    """Return `obj` as a parcel; functions and classes of `__main__` by value.

    Parameters
    ----------
    name : str
        How the caller knows the object; begins the path in an error.
    to_main : bool
        It goes back to the process that owns `__main__`: classes from there are looked up by name first, so that what
        arrives is an instance of the class that the user has, not of a copy.
    recycled : bool
        There is one receiver; see `nbmp.pickling.parcel`.
    farewell : bool
        This process ends when it has sent this: nothing that ends with it, such as memory of a GPU, may be lent.

    Raises
    ------
    CannotTravelError
        When it, or something in it, cannot be pickled; names the place.
    MemoryError
        As it came: that it can travel is not in doubt.
    """
    try:
        pickled, luggage = _dump(obj, to_main, farewell=farewell)
    except MemoryError:
        raise
    except Exception as error:
        path, culprit = find_culprit(obj, name, lambda part: _can_leave(part, to_main))
        raise CannotTravelError(f"{path} cannot travel to another process: {_reason(error, culprit)}", path) from (
            error if _tells_more(error) else None
        )
    return pack(pickled, luggage.buffers, luggage.owners, recycled=recycled).settled()


def dumps_alone(obj: Any, *, to_main: bool = False) -> bytes | None:
    """Return `obj` as one string of bytes, however large; None when it cannot be pickled or needs descriptors."""
    try:
        pickled, luggage = _dump(obj, to_main, alone=True)
    except Exception:
        return None
    return None if luggage.owners else b"".join(pickled)


def _dump(obj: Any, to_main: bool, *, alone: bool = False, farewell: bool = False) -> tuple[Pieces, Luggage]:
    pickled, luggage = Pieces(), Luggage(to_main, farewell or alone)
    pickler = _Pickler(pickled, luggage, to_main, alone)
    before = mp_context.get_spawning_popen()
    try:
        SPAWNING.spawning_popen = luggage
        pickler.dump(obj)
    finally:
        SPAWNING.spawning_popen = before
    return pickled, luggage


def _tells_more(error: BaseException) -> bool:
    """Return whether it was raised in code of the user's, whose place it tells, or is one of ours, with its class."""
    *_, (frame, _) = traceback.walk_tb(error.__traceback__)
    of_users = frame.f_globals.get("__name__", "").partition(".")[0] not in _PICKLERS
    return of_users or type(error).__module__ == "nbmp.errors"


def _can_leave(obj: Any, to_main: bool) -> bool:
    try:
        _dump(obj, to_main)
    except Exception:
        return False
    return True


def _reason(error: Exception, culprit: Any) -> str:
    text = str(error).splitlines()[0] if str(error) else type(error).__name__
    if "SemLock created in a fork context" in text:
        return "multiprocessing made it for forks only; one that nbmp makes (nbmp.Lock, nbmp.Event, ...) can"
    kind = f"{type(culprit).__module__}.{type(culprit).__qualname__}".removeprefix("builtins.")
    return text if type(culprit).__qualname__ in text else f"{text} (it is a {kind})"


class _Pickler(cloudpickle.Pickler):  # type: ignore[misc]  # cloudpickle has no types
    """One pickling by value."""

    dispatch_table: ClassVar[ChainMap[Any, Any]] = ChainMap(
        {
            types.CodeType: lambda code: _reduce_code(code),
            types.MethodType: reduce_method,
            functools._lru_cache_wrapper: lambda function: _reduce_cached(function),
            io.TextIOWrapper: lambda file: _reduce_file(file),
        },
        ForkingPickler._extra_reducers,  # type: ignore[attr-defined]  # no public way to what it was taught
        cloudpickle.Pickler.dispatch_table,
    )

    def __init__(self, file: Pieces, luggage: Luggage, to_main: bool, alone: bool) -> None:
        super().__init__(file, protocol=5, buffer_callback=None if alone else luggage.take_buffer)
        self._to_main = to_main
        self._numpy = sys.modules.get("numpy")
        self._foreign = reducers()

    def reducer_override(self, obj: Any) -> Any:
        if self._numpy is not None and isinstance(obj, self._numpy.ndarray):
            from nbmp.pickling.arrays import reduce_array, reduce_subclass

            if type(obj) is self._numpy.ndarray:
                return reduce_array(obj)
            if type(obj) not in self.dispatch_table:
                return reduce_subclass(obj)
        if type(obj) in self._foreign:
            return self._foreign[type(obj)](obj)
        if self._to_main and isinstance(obj, type) and obj.__module__ == "__main__":
            return main_class, (obj.__qualname__, cloudpickle.dumps(obj))
        if isinstance(obj, BaseException) and isinstance(type(obj).__reduce__, types.MethodDescriptorType):
            return _reduce_exception(obj)
        stranger = strangers.reduce(obj)
        if stranger is not None:
            return stranger
        reduced = super().reducer_override(obj)
        if isinstance(reduced, tuple) and reduced[0] is cloud._make_skeleton_class:
            return faithful(obj, reduced)
        return reduced


def _reduce_exception(error: BaseException) -> tuple[Any, ...]:
    """Let neither `__init__` nor `__setattr__` of its class have a say when it is rebuilt."""
    reduced: Any = error.__reduce__()
    _, args, *state = reduced
    if not state or not isinstance(type(error).__setstate__, types.MethodDescriptorType):
        return exception, (type(error), args), *state
    return exception, (type(error), args), state[0], None, None, exception_state


def _reduce_file(file: io.TextIOWrapper) -> Any:
    """Refuse all but the standard streams, as multiprocessing does; cloudpickle sends the text that is left to read."""
    if file is sys.stdout or file is sys.stderr:
        return cloud._file_reduce(file)
    name = getattr(file, "name", "")
    raise TypeError(f"an open file cannot be sent (TextIOWrapper {name!r}): open it in the process that uses it")


def _reduce_cached(function: Any) -> Any:
    """Send a function of `functools.cache` by name only where a plain function would be; the other side begins anew."""
    if cloud._lookup_module_and_qualname(function) is not None:
        return function.__reduce__()
    return cached, (function.__wrapped__, *function.cache_parameters().values())


def _reduce_code(code: types.CodeType) -> Reduced:
    """Keep the file name (cloudpickle 3.1.3 drops it), and take along source that no file has: that of a cell."""
    _, arguments, *_ = cloud._code_reduce(code)
    source = None
    if not os.path.exists(code.co_filename):
        source = "".join(linecache.getlines(code.co_filename)) or None
    return code_of_file, (arguments, code.co_filename, source)
