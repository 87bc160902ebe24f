"""`share_memory`: a shared array with the contents of a private one."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from nbmp.memory.arrays import is_on_gpu, is_shared
from nbmp.memory.likes import empty_like
from nbmp.memory.subclasses import is_masked_array, put_together, taken_apart


def share_memory(array: NDArray[Any]) -> NDArray[Any]:
    """Return a shared array with the contents of `array`: one copy, or `array` itself when it is shared already.

    The given array stays private: NumPy cannot move the memory of an existing array, so keep and use what is returned.
    Shape, dtype, order of the axes in memory and read-only flag are kept. So is a subclass, with its attributes, but of
    a `numpy.memmap`, which belongs to its file, a plain array is made. Of a masked array data and mask are shared, each
    unless it is shared already; one without a mask gets one, so that everybody sees what anybody masks later. A CuPy
    array is returned as it is: other processes get the same memory in any case.

    Raises
    ------
    TypeError
        For what is not an array, and for dtypes that hold Python objects.
    SharedMemoryError
        When it is larger than the memory left.

    Examples
    --------
    >>> row = nbmp.share_memory(np.arange(4))
    >>> nbmp.launch(lambda rank: row.put(rank, 10 + rank), nprocs=2)
    [None, None]
    >>> row
    array([10, 11,  2,  3])
    """
    if is_on_gpu(array):
        return array
    if not isinstance(array, np.ndarray):
        raise TypeError(f"share_memory takes a numpy.ndarray, not {type(array).__name__}: give it numpy.asarray(...)")
    if is_masked_array(array):
        return _share_masked(array)
    if is_shared(array):
        return array
    plain, attributes = taken_apart(array)
    shared = _copied(plain)
    kind = type(array)
    return shared if kind is np.ndarray or issubclass(kind, np.memmap) else put_together(shared, kind, attributes)


def _copied(plain: NDArray[Any]) -> NDArray[Any]:
    shared = empty_like(plain)
    shared[...] = plain
    shared.flags.writeable = plain.flags.writeable
    return shared


def _share_masked(array: Any) -> NDArray[Any]:
    plain, attributes = taken_apart(array)
    mask = np.ma.getmaskarray(array)  # itself, or a new one where there is none
    if is_shared(plain) and is_shared(mask):
        return array  # type: ignore[no-any-return]
    return put_together(share_memory(plain), type(array), {**attributes, "_mask": share_memory(mask)})
