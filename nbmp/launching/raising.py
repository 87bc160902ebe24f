"""An exception of a rank, made ready to be told. Runs in the rank; loaded only when something was raised."""

import multiprocessing.process
import os
import time
import traceback
from types import TracebackType

import nbmp
from nbmp import platforms
from nbmp.errors import CudaForkError
from nbmp.launching.messages import Raised, RawException, RawFrame

_NOT_THEIRS = (os.path.dirname(os.path.abspath(nbmp.__file__)) + os.sep, multiprocessing.process.__file__)
_CHAIN = 10
"""How many earlier exceptions are told."""


def raised(error: BaseException, stage: str) -> Raised:
    """Return what is told of an exception that came out of the rank's task."""
    when = time.monotonic()
    BaseException.with_traceback(error, _user_part(error.__traceback__))  # its class may refuse to have it set
    error = _explained(error)
    told = _raw(error, _CHAIN)
    return Raised(stage, when, told, _formatted(error, told), _pickled(error))


_CUDA_ERRORS = ("CUDARuntimeError", "CUDADriverError", "CudaAPIError", "CudaSupportError", "CudaDriverError")
"""Classes of CuPy and numba."""


def _explained(error: BaseException) -> BaseException:
    """Return the error itself, or the one that says why CUDA fails in a process that was forked after it was used."""
    by = platforms.lost_to_fork()
    if by is None or isinstance(error, CudaForkError):
        return error
    if type(error).__name__ not in _CUDA_ERRORS and "CUDA" not in _text(error):
        return error
    explained = CudaForkError(
        f"CUDA was initialised (by {by}) in the process that this rank was forked from, and cannot be used in a forked "
        "process: start ranks that use the GPU by start_method='spawn', or fork before anything touches it"
    )
    explained.__cause__, explained.__traceback__ = error, error.__traceback__
    return explained


def _user_part(trace: TracebackType | None) -> TracebackType | None:
    """Return the traceback without the frames at its beginning that are not the user's."""
    while trace is not None and trace.tb_frame.f_code.co_filename.startswith(_NOT_THEIRS):
        trace = trace.tb_next
    return trace


def _raw(error: BaseException, chain: int) -> RawException:
    frames = tuple(
        RawFrame(frame.filename, frame.lineno or 0, frame.name, frame.line or "")
        for frame in traceback.extract_tb(error.__traceback__)
    )
    earlier = error.__context__ if error.__cause__ is None and not error.__suppress_context__ else error.__cause__
    kind = type(error)
    name = (
        kind.__qualname__
        if kind.__module__ in ("builtins", "__main__", "nbmp.errors")
        else f"{kind.__module__}.{kind.__qualname__}"
    )
    return RawException(
        type_name=name,
        message=_text(error),
        frames=frames,
        notes=_notes(error),
        earlier=None if earlier is None or chain == 0 else _raw(earlier, chain - 1),
        is_cause=error.__cause__ is not None,
    )


def _formatted(error: BaseException, told: RawException) -> str:
    try:
        return "".join(traceback.format_exception(error))
    except BaseException:  # it asks an exception for its truth, thus its length
        frames = "".join(traceback.format_tb(error.__traceback__))
        return f"Traceback (most recent call last):\n{frames}{told.type_name}: {told.message}\n"


def _notes(error: BaseException) -> tuple[str, ...]:
    try:
        notes = getattr(error, "__notes__", None)
    except BaseException:
        return ("<its notes cannot be shown>",)
    if notes is None:
        return ()
    return tuple(_text(note, "note") for note in (notes if isinstance(notes, (list, tuple)) else [notes]))


def _text(shown: object, what: str = "its message") -> str:
    """Return the object as text. The text of an exception is the user's code: it may raise whatever it likes."""
    try:
        return str(shown)
    except BaseException:
        return f"<{what} cannot be shown>"


def _pickled(error: BaseException) -> bytes | None:
    from nbmp.pickling.leaving import dumps_alone

    try:
        return dumps_alone(error, to_main=True)
    except BaseException:  # of a `__reduce__`
        return None
