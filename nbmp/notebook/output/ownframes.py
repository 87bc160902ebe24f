"""A call that nbmp refuses is shown as the user's line and what is wrong with it, without nbmp's own frames.

The exception keeps them: `%debug` and `error.__traceback__` have all.
"""

from functools import partial
from types import TracebackType
from typing import Any

from nbmp.launching.describing import OURS

_TOLD = (TypeError, ValueError, IndexError)
"""What nbmp raises for wrong arguments, besides its own errors."""


def enable(shell: Any) -> None:
    """Have this shell leave out the frames."""
    printer = shell.InteractiveTB
    if "structured_traceback" not in vars(printer):
        vars(printer)["structured_traceback"] = partial(_structured, printer.structured_traceback)


def disable(shell: Any) -> None:
    vars(shell.InteractiveTB).pop("structured_traceback", None)


def _structured(original: Any, kind: Any = None, error: Any = None, trace: Any = None, *more: Any, **named: Any) -> Any:
    return original(kind, error, without_ours(error, trace), *more, **named)


def without_ours(error: BaseException | None, trace: TracebackType | None) -> TracebackType | None:
    """Return the traceback without its last frames if these are nbmp's and the error is one that tells what to do."""
    if type(error).__module__ != "nbmp.errors" and not isinstance(error, _TOLD):
        return trace
    entries = []
    while trace is not None:
        entries.append(trace)
        trace = trace.tb_next
    while len(entries) > 1 and entries[-1].tb_frame.f_code.co_filename.startswith(OURS):
        entries.pop()
    shown = None
    for entry in reversed(entries):
        shown = TracebackType(shown, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return shown
