"""What a rank told of an exception, put into a person's words: cell names, source lines, the user's frames only."""

import linecache
import os
import re
import sysconfig
from functools import cache
from itertools import takewhile

import nbmp
from nbmp.launching.frontends import Frontend
from nbmp.launching.messages import RawException, RawFrame
from nbmp.reports import ExceptionReport, Frame

OURS = os.path.dirname(os.path.abspath(nbmp.__file__)) + os.sep

_CRASH_LINE = re.compile(r'^  File "(.*)", line (\d+) in (.*)$', re.MULTILINE)

BEFORE, AFTER = 2, 1
"""Lines of source shown around the one that matters."""


def report(raw: RawException, frontend: Frontend) -> ExceptionReport:
    """Return the report of an exception."""
    users = tuple(_frame(frame, frontend) for frame in raw.frames if _is_users(frame.filename))
    last = raw.frames[-1] if raw.frames else None
    return ExceptionReport(
        type_name=raw.type_name,
        message=raw.message,
        frames=users,
        raised_in=_frame(last, frontend) if last is not None and not _is_users(last.filename) else None,
        notes=raw.notes,
        earlier=None if raw.earlier is None else report(raw.earlier, frontend),
        is_cause=raw.is_cause,
    )


def crash_frames(text: str, frontend: Frontend) -> tuple[Frame, ...]:
    """Return the user's frames, outermost first, of a stack that faulthandler wrote."""
    raw = [RawFrame(filename, int(line), function, "") for filename, line, function in _CRASH_LINE.findall(text)]
    inside = list(takewhile(lambda frame: not frame.filename.startswith(OURS), raw))  # innermost first; then it is ours
    return tuple(_frame(frame, frontend) for frame in reversed(inside) if _is_users(frame.filename))


def _frame(raw: RawFrame, frontend: Frontend) -> Frame:
    lines = linecache.getlines(raw.filename)
    first = max(1, raw.line - BEFORE)
    source = tuple(
        (number, lines[number - 1].rstrip("\n"))
        for number in range(first, min(len(lines), raw.line + AFTER) + 1)
        if number == raw.line or lines[number - 1].strip()
    )
    if not source and raw.source:
        source = ((raw.line, raw.source),)
    return Frame(frontend.cell_name(raw.filename) or _short(raw.filename), raw.line, raw.function, source)


def _short(filename: str) -> str:
    relative = os.path.relpath(filename) if os.path.isabs(filename) else filename
    return filename if relative.startswith("..") else relative


def _is_users(filename: str) -> bool:
    return not filename.startswith(("<frozen ", *_library_folders()))


@cache
def _library_folders() -> tuple[str, ...]:
    paths = sysconfig.get_paths()
    folders = {paths[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    return (OURS, *sorted(folder + os.sep for folder in folders))
