"""Exceptions that a rank raises: which rank, what, where, and the original as the cause."""

from __future__ import annotations

import dataclasses
import threading
from typing import Any

import pytest

import nbmp
from tests.launching import functions


class Complaint(BaseException):
    """An exception that `except Exception` does not catch."""


class SimulationError(Exception):
    """Takes other arguments than it passes on."""

    def __init__(self, step: int, reason: str) -> None:
        super().__init__(f"{reason} at step {step}")
        self.step = step


class KeywordError(Exception):
    def __init__(self, *, code: int) -> None:
        super().__init__(code)
        self.code = code


class LockedError(Exception):
    def __init__(self) -> None:
        super().__init__("has a lock")
        self.lock = threading.Lock()


@dataclasses.dataclass(frozen=True)
class FrozenError(Exception):
    """Has no attribute set, not even its traceback."""

    step: int


class SilentError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


def fail(rank: int, error: BaseException) -> None:
    raise error


def fail_by(rank: int, kind: Any, arguments: dict[str, Any]) -> None:
    raise kind(**arguments)


def caught(method: str, function: Any, *args: Any, nprocs: int = 1) -> nbmp.ProcessRaisedException:
    with pytest.raises(nbmp.ProcessRaisedException) as raised:
        nbmp.launch(function, args, nprocs, start_method=method)
    return raised.value


def take_nothing() -> None:
    pass


@pytest.mark.parametrize(("args", "count"), [((), "0 arguments"), ((1,), "1 argument")])
def test_call_with_the_wrong_number_of_arguments_says_how_it_was(method: str, args: Any, count: str) -> None:
    error = caught(method, take_nothing, *args)
    shown = "\n".join(error._render_traceback_())
    assert "take_nothing() takes 0 positional arguments" in shown
    assert f"fn is called as fn(rank, *args): here with the rank and {count}\n" in shown


def test_other_type_errors_do_not() -> None:
    assert "fn is called" not in str(caught("fork", fail_by, TypeError, {}))


def fail_in_rank_1(rank: int) -> None:
    if rank == 1:
        raise ValueError("shapes do not match")


def test_message_has_torchs_first_line_and_the_ranks_traceback(method: str) -> None:
    error = caught(method, fail_in_rank_1, nprocs=2)
    assert error.error_index == 1
    assert str(error) == f"rank 1 of 2 raised ValueError: shapes do not match{error.msg}"
    assert str(nbmp.ProcessRaisedException(error.msg, 1, 1)) == error.msg  # as torch makes it
    assert error.msg.startswith(
        "\n\n-- Process 1 terminated with the following error:\nTraceback (most recent call last):\n"
    )
    assert error.msg.endswith("ValueError: shapes do not match\n")
    assert "in fail_in_rank_1\n    raise ValueError" in error.msg
    assert "nbmp/launching" not in error.msg


def test_original_exception_is_the_cause(method: str) -> None:
    cause = caught(method, fail_in_rank_1, nprocs=2).__cause__
    assert type(cause) is ValueError
    assert cause.args == ("shapes do not match",)


def test_report_has_type_message_and_the_users_frames(method: str) -> None:
    failure = caught(method, fail_in_rank_1, nprocs=2).failures[0]
    assert failure.report is not None
    assert (failure.rank, failure.summary) == (1, "ValueError: shapes do not match")
    assert [frame.function for frame in failure.report.frames] == ["fail_in_rank_1"]
    assert failure.report.frames[0].file.endswith("test_exceptions.py")
    assert any('raise ValueError("shapes' in text for _, text in failure.report.frames[0].source)


@pytest.mark.parametrize("kind", [KeyboardInterrupt, GeneratorExit, Complaint])
def test_exceptions_beyond_exception_are_failures_with_a_traceback(method: str, kind: type[BaseException]) -> None:
    error = caught(method, fail, kind("mine"))
    assert type(error.__cause__) is kind
    assert f"{kind.__name__}: mine" in error.msg
    assert "raise error" in error.msg


def test_exception_with_other_arguments_arrives_as_itself(method: str) -> None:
    error = caught(method, fail_by, SimulationError, {"step": 4, "reason": "diverged"})
    assert type(error.__cause__) is SimulationError
    assert error.__cause__.step == 4
    assert "SimulationError: diverged at step 4" in error.msg


def test_exception_with_keyword_arguments_arrives_as_itself(method: str) -> None:
    error = caught(method, fail_by, KeywordError, {"code": 5})
    assert type(error.__cause__) is KeywordError
    assert error.__cause__.code == 5


def test_exception_that_is_a_frozen_dataclass_arrives_as_itself(method: str) -> None:
    error = caught(method, fail_by, FrozenError, {"step": 6})
    assert type(error.__cause__) is FrozenError
    assert error.__cause__.step == 6
    assert "raise kind(**arguments)" in error.msg
    with nbmp.Pool(1, start_method=method) as pool:
        with pytest.raises(FrozenError) as raised:
            pool.apply(fail_by, (0, FrozenError, {"step": 7}))
        assert raised.value.step == 7
        assert "raise kind(**arguments)" in str(raised.value.__cause__)
        pool.terminate()
        pool.join()


def test_exception_that_cannot_travel_is_told_as_text(method: str) -> None:
    error = caught(method, fail_by, LockedError, {})
    assert error.__cause__ is None
    assert "LockedError: has a lock" in error.msg
    assert "raise kind(**arguments)" in error.msg


def raise_local(rank: int) -> None:
    class LocalError(Exception):
        pass

    raise LocalError("of a local class")


def test_exception_of_a_local_class_is_told(method: str) -> None:
    error = caught(method, raise_local)
    assert "LocalError: of a local class" in error.msg
    assert type(error.__cause__).__name__ == "LocalError"
    assert str(error.__cause__) == "of a local class"


def test_exception_whose_text_fails_is_told(method: str) -> None:
    error = caught(method, fail_by, SilentError, {})
    assert type(error.__cause__) is SilentError
    assert "SilentError" in error.failures[0].summary


class LeavingError(Exception):
    """Its text, its length and its pickling end the process, or would."""

    def __str__(self) -> str:
        raise SystemExit(3)

    def __len__(self) -> int:
        raise SystemExit(4)

    def __reduce__(self) -> Any:
        raise SystemExit(5)


class MuteNote:
    def __str__(self) -> str:
        raise RuntimeError("no note")


def raise_with_notes(rank: int, notes: Any) -> None:
    error = ValueError("the message")
    error.__notes__ = notes
    raise error


def raise_from_one_that_leaves(rank: int) -> None:
    raise ValueError("the message") from LeavingError()


@pytest.mark.parametrize("notes", [None, 3, [MuteNote(), "look here"]])
def test_exception_with_bad_notes_is_told(method: str, notes: Any) -> None:
    error = caught(method, raise_with_notes, notes)
    assert error.failures[0].summary.endswith("ValueError: the message")
    report = error.failures[0].report
    assert report is not None
    assert report.frames[-1].function == "raise_with_notes"
    assert report.notes == {type(None): (), int: ("3",)}.get(type(notes), ("<note cannot be shown>", "look here"))


@pytest.mark.parametrize("function", [fail_by, raise_from_one_that_leaves])
def test_exception_whose_own_methods_end_the_process_is_told(method: str, function: Any) -> None:
    error = caught(method, function, *([LeavingError, {}] if function is fail_by else []))
    assert "exit code" not in str(error)
    assert "LeavingError" in error.msg


def raise_chain(rank: int) -> None:
    try:
        try:
            raise KeyError("first")
        except KeyError:
            raise ValueError("second")  # noqa: B904  # an implicit context is the point
    except ValueError as error:
        last = RuntimeError("third")
        last.add_note("look here")
        raise last from error


def test_notes_and_chain_are_told(method: str) -> None:
    error = caught(method, raise_chain)
    for words in (
        "KeyError: 'first'",
        "ValueError: second",
        "RuntimeError: third",
        "look here",
        "direct cause",
    ):
        assert words in error.msg
    last = error.failures[0].report
    assert last is not None
    assert last.notes == ("look here",)
    assert last.is_cause
    assert last.earlier is not None
    assert last.earlier.headline() == "ValueError: second"
    assert not last.earlier.is_cause
    assert last.earlier.earlier is not None
    assert last.earlier.earlier.type_name == "KeyError"


def test_exception_with_a_large_message_arrives_whole(method: str) -> None:
    error = caught(method, fail, ValueError("x" * 1_000_000))
    assert len(error.msg) > 1_000_000
    assert str(error.__cause__) == "x" * 1_000_000


def raise_group(rank: int) -> None:
    raise ExceptionGroup("two", [ValueError("one"), TypeError("other")])


def test_exception_group_arrives_with_its_members(method: str) -> None:
    error = caught(method, raise_group)
    assert isinstance(error.__cause__, ExceptionGroup)
    assert [str(member) for member in error.__cause__.exceptions] == ["one", "other"]
    assert "TypeError: other" in error.msg


class FileProblem(OSError):
    def __init__(self, path: str, *, hint: str) -> None:
        super().__init__(2, f"No data ({hint})", path)
        self.hint = hint


def test_os_error_with_other_arguments_arrives_as_itself(method: str) -> None:
    cause = caught(method, fail_by, FileProblem, {"path": "a.npy", "hint": "download it"}).__cause__
    assert type(cause) is FileProblem
    assert (cause.errno, cause.filename, cause.hint) == (2, "a.npy", "download it")
    assert str(cause) == "[Errno 2] No data (download it): 'a.npy'"


BUILT_IN = [
    OSError(2, "No such file", "a.npy"),
    UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte"),
    StopIteration(3),
    ImportError("no module", name="m", path="p"),
    SyntaxError("invalid", ("f.py", 1, 2, "text", 1, 3)),
    KeyError("k"),
]


def test_built_in_exceptions_arrive_with_their_fields(method: str) -> None:
    for error in BUILT_IN:
        cause = caught(method, fail, error).__cause__
        assert type(cause) is type(error)
        assert (str(cause), cause.args) == (str(error), error.args)
        for name in ("errno", "filename", "reason", "value", "name", "path", "lineno"):
            assert getattr(cause, name, None) == getattr(error, name, None)


def test_recursion_error_is_told(method: str) -> None:
    error = caught(method, endless)
    assert type(error.__cause__) is RecursionError


def endless(rank: int) -> None:
    endless(rank)


def test_next_launch_after_a_failure_works(method: str) -> None:
    caught(method, fail_in_rank_1, nprocs=2)
    assert nbmp.launch(functions.give, (1,), 2, start_method=method) == [1, 1]
