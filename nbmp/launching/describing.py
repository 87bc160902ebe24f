"""What a rank told of an exception, put into a person's words: cell names, source lines, the user's frames only."""

import linecache
import os
import re
import stat
import sys
import sysconfig
from collections.abc import Callable
from functools import cache
from itertools import takewhile

import nbmp
from nbmp.launching.frontends import Frontend
from nbmp.launching.messages import RawException, RawFrame
from nbmp.reports import ExceptionReport, Frame

OURS = os.path.dirname(os.path.abspath(nbmp.__file__)) + os.sep

_CRASH_LINE = re.compile(r'^  File "(.*)", line (\d{1,9}) in (.*)$', re.MULTILINE)

_TRACEBACK_FILE = re.compile(r'(?<=^  )File "(.*)"(?=, line \d)', re.MULTILINE)

_ESCAPED = re.compile(r"\\x[0-9a-f]{2}|\\u[0-9a-f]{4}|\\U[0-9a-f]{8}")

_RANK, _CALLS = os.path.join(OURS, "launching", "rank.py"), "_body"
"""Where a rank's function is called."""

BEFORE, AFTER = 2, 1
"""Lines of source shown around the one that matters."""


def report(raw: RawException, frontend: Frontend) -> ExceptionReport:
    """Return the report of an exception."""
    users = tuple(describe(frame, frontend) for frame in raw.frames if is_users(frame.filename))
    last = raw.frames[-1] if raw.frames else None
    return ExceptionReport(
        type_name=raw.type_name,
        message=in_cells(raw.message, frontend.cell_name),  # that of a launch within a rank has a traceback in it
        frames=users,
        raised_in=describe(last, frontend) if last is not None and _is_librarys(last.filename) else None,
        notes=raw.notes,
        earlier=None if raw.earlier is None else report(raw.earlier, frontend),
        is_cause=raw.is_cause,
    )


def _is_librarys(filename: str) -> bool:
    """Return whether a file is worth a line: not the user's, and not nbmp's, whose messages say all."""
    return not is_users(filename) and not filename.startswith(OURS)


def crash_frames(text: str, frontend: Frontend) -> tuple[Frame, ...]:
    """Return the user's frames, outermost first, of a stack that faulthandler wrote."""
    return tuple(describe(frame, frontend) for frame in raw_stack(text) if is_users(frame.filename))


def raw_stack(text: str) -> list[RawFrame]:
    """Return the frames, outermost first, of a stack that faulthandler wrote, from the rank's function on.

    Those around that function are left out: under fork they are the launching process'.
    """
    found = [
        RawFrame(_unescaped(filename), int(line), _unescaped(function), "")
        for filename, line, function in _CRASH_LINE.findall(text)
    ]
    inside = list(takewhile(lambda frame: not (frame.filename == _RANK and frame.function == _CALLS), found))
    if len(inside) == len(found) and any(frame.filename == _RANK for frame in found):
        return []  # it has not called its function yet, or has come back
    return inside[::-1]


def _unescaped(text: str) -> str:
    """Return what faulthandler, which writes ASCII only, made of a name."""
    return _ESCAPED.sub(_unescaped_character, text)


def _unescaped_character(found: re.Match[str]) -> str:
    code = int(found[0][2:], 16)
    return chr(code) if code <= sys.maxunicode else found[0]


def describe(raw: RawFrame, frontend: Frontend) -> Frame:
    """Return a frame with the file as a person knows it, and its source."""
    lines = _lines(raw.filename)
    first = max(1, raw.line - BEFORE)
    source = tuple(
        (number, lines[number - 1].rstrip("\n"))
        for number in range(first, min(len(lines), raw.line + AFTER) + 1)
        if number == raw.line or lines[number - 1].strip()
    )
    if not source and raw.source:
        source = ((raw.line, raw.source),)
    return Frame(frontend.cell_name(raw.filename) or _short(raw.filename), raw.line, raw.function, source)


def _lines(filename: str) -> list[str]:
    """Return the source; none of what is no file: a rank can give its code any name, that of a device or a pipe too."""
    try:
        if not stat.S_ISREG(os.stat(filename).st_mode):
            return []
    except OSError:  # a cell, or a relative name that may be found on the path
        pass
    except ValueError:
        return []
    return linecache.getlines(filename)


def in_cells(text: str, cell_name: Callable[[str], str | None]) -> str:
    """Return a traceback as text, its files that are cells called as a person knows them."""

    def named(found: re.Match[str]) -> str:
        return cell_name(found[1]) or found[0]

    return _TRACEBACK_FILE.sub(named, text)


def _short(filename: str) -> str:
    if filename.startswith(_library_folders()):
        return library_path(filename)
    relative = os.path.relpath(filename) if os.path.isabs(filename) else filename
    return filename if relative.startswith("..") else relative


def is_users(filename: str) -> bool:
    """Return whether a file is of the user's code: not of the interpreter's, an installed package's or nbmp's."""
    return not filename.startswith(("<frozen ", *_library_folders()))


@cache
def _library_folders() -> tuple[str, ...]:
    paths = sysconfig.get_paths()
    folders = {paths[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    return (OURS, *sorted(folder + os.sep for folder in folders))


def library_path(filename: str) -> str:
    """Return the path of a library's file below its root: `threading.py`, `numpy/linalg/_linalg.py`."""
    roots = (os.path.dirname(OURS[:-1]) + os.sep, *_library_folders()[1:])
    return min((filename.removeprefix(root) for root in roots), key=len)
