"""Standard streams of a rank: its own pipes, whole lines, no input. Runs in the rank."""

import builtins
import contextlib
import io
import os
import sys
from typing import Any, NoReturn

from nbmp.errors import StdinError


def take_over() -> None:
    """Make descriptors 0, 1, 2 and the streams of `sys` the rank's own.

    Whatever still holds the streams of the launching process, such as the handlers of `logging`, writes to the rank's
    from here on: in a notebook those lead to the kernel's sockets, which a forked child must not touch.
    """
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    for name, fd in (("stdout", 1), ("stderr", 2)):
        stream = _line_writer(fd)
        for old in {id(old): old for old in (getattr(sys, name), getattr(sys, f"__{name}__"))}.values():
            _redirect(old, stream)
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)


def refuse_input() -> None:
    """Make `input()`, reads of `sys.stdin` and `breakpoint()` raise `StdinError`.

    A debugger that the user has named in PYTHONBREAKPOINT (one with a socket, say) is left alone.
    """
    sys.stdin = _NoInput()
    builtins.input = _no_input
    if "PYTHONBREAKPOINT" in os.environ:
        sys.breakpointhook = sys.__breakpointhook__  # a kernel has one of its own, for a front end's debugger
    else:
        sys.breakpointhook = _no_debugger


def flush() -> None:
    """Hand everything that was printed to the pipes. A stream whose descriptor was closed is given up."""
    for name in ("stdout", "stderr"):
        try:
            getattr(sys, name).flush()
        except OSError:
            setattr(sys, name, None)
        except Exception:  # a stream of the user's
            pass


class _LineWriter(io.TextIOWrapper):
    """Hands over each line, and what `print(..., end="")` writes: its end comes as a text of its own.

    So dots show as they come, and those before a crash are not lost.
    """

    def write(self, text: str) -> int:
        count = super().write(text)
        if not text:
            self.flush()
        return count


def _line_writer(fd: int) -> io.TextIOWrapper:
    raw = open(fd, "wb", closefd=False)  # noqa: SIM115  # as long as the rank
    return _LineWriter(raw, encoding="utf-8", errors="backslashreplace", line_buffering=True)


def _redirect(old: Any, new: io.TextIOWrapper) -> None:
    if old is None:
        return
    logging = sys.modules.get("logging")
    for reference in list(getattr(logging, "_handlerList", ())):  # not through the loggers: a rank would copy them all
        handler = reference()
        if getattr(handler, "stream", None) is old:
            with contextlib.suppress(AttributeError):  # one that asks for `sys.stderr` each time
                handler.stream = new
    with contextlib.suppress(
        AttributeError, TypeError
    ):  # a stream written in C takes no attributes; it writes to our fd
        old.write, old.flush = new.write, new.flush


class _NoInput(io.TextIOBase):
    """`sys.stdin` of a rank."""

    def readable(self) -> bool:
        return True

    def read(self, *_: Any) -> NoReturn:
        _no_input()

    def readline(self, *_: Any) -> NoReturn:
        _no_input()


def _no_input(*_: Any) -> NoReturn:
    raise StdinError(
        "a rank has no keyboard: ask in the launching process (the notebook) and pass the answer as an argument"
    )


def _no_debugger(*_: Any, **__: Any) -> NoReturn:
    raise StdinError(
        "a debugger asks for commands, and a rank has no keyboard: run this without ranks to debug it; "
        "to see where a rank is, use %mpstack or context.stacks()"
    )
