"""Failures before and after the function runs: the reason is told, and when it happened."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

import nbmp
from tests.launching import functions

TASK_IS_PICKLED = pytest.mark.parametrize("method", ["forkserver", "spawn"])


class FailsToArrive:
    """Can be pickled; fails with `error` when it is unpickled."""

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def __reduce__(self) -> tuple[Any, ...]:
        return fail_to_rebuild, (self.error,)


def fail_to_rebuild(error: BaseException) -> None:
    raise error


def return_what_fails_to_arrive(rank: int) -> Any:
    return FailsToArrive(ValueError("broken by the trip"))


def return_a_lambda_over_a_generator(rank: int) -> Any:
    generator = (index for index in range(3))
    return {"data": [1, lambda: generator]}


def caught(method: str, function: Any, *args: Any) -> nbmp.ProcessRaisedException:
    with pytest.raises(nbmp.ProcessRaisedException) as raised:
        nbmp.launch(function, args, 2, start_method=method)
    return raised.value


@TASK_IS_PICKLED
@pytest.mark.parametrize(
    "error", [ValueError("no way"), KeyboardInterrupt("no way"), SystemExit("no way"), SystemExit(0)]
)
def test_task_that_fails_to_unpickle_is_told_with_its_reason(method: str, error: BaseException) -> None:
    told = caught(method, functions.give, FailsToArrive(error))
    assert "terminated with the following error while unpickling its task" in told.msg
    assert type(error).__name__ in told.msg
    assert str(error) in told.msg
    assert told.failures[0].stage == "unpickling its task"
    assert type(told.__cause__) is type(error)


@TASK_IS_PICKLED
def test_module_that_fails_to_import_is_told_with_its_reason(
    method: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "fragile.py").write_text(
        "import os\nif 'RANK' in os.environ: raise OSError('no data here')\ndef f(rank): pass\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    import fragile  # type: ignore[import-not-found]

    told = caught(method, fragile.f)
    assert "while unpickling its task" in told.msg
    assert "OSError: no data here" in told.msg
    assert "fragile.py" in told.msg


@TASK_IS_PICKLED
def test_module_that_is_gone_is_told_by_name(method: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "vanishing.py").write_text("def f(rank): pass\n")
    monkeypatch.syspath_prepend(tmp_path)
    import vanishing  # type: ignore[import-not-found]

    (tmp_path / "vanishing.py").unlink()
    told = caught(method, vanishing.f)
    assert "No module named 'vanishing'" in told.msg


def test_result_that_cannot_be_pickled_is_named_with_its_place(method: str) -> None:
    told = caught(method, return_a_lambda_over_a_generator)
    assert "while pickling its result" in told.msg
    assert "result['data'][1]" in told.msg
    assert "generator" in told.msg
    assert told.failures[0].stage == "pickling its result"


def test_result_that_fails_to_unpickle_in_the_launching_process_is_told(method: str) -> None:
    told = caught(method, return_what_fails_to_arrive)
    assert "while having its result unpickled by the launching process" in told.msg
    assert "broken by the trip" in told.msg
    assert type(told.__cause__) is ValueError
    assert nbmp.launch(functions.give, (1,), start_method=method) == [1]


def test_result_that_interrupts_when_unpickled_does_not_hang_the_launch(method: str) -> None:
    told = caught(method, return_interrupting)
    assert "while having its result unpickled" in told.msg


def return_interrupting(rank: int) -> Any:
    return FailsToArrive(KeyboardInterrupt("odd"))


def fail_at_exit(rank: int) -> str:
    import atexit
    import os

    atexit.register(os._exit, 9)
    return "returned"


def test_rank_that_fails_after_its_function_returned_says_so(method: str) -> None:
    with pytest.raises(nbmp.ProcessExitedException) as raised:
        nbmp.launch(fail_at_exit, start_method=method)
    assert raised.value.exit_code == 9
    assert raised.value.failures[0].stage == "ending, after its function had returned"
    told = ["process 0 terminated with exit code 9", "It was ending, after its function had returned."]
    assert str(raised.value).splitlines()[:2] == told


def kill_while_pickled(rank: int) -> Any:
    return KillsWhenPickled()


class KillsWhenPickled:
    def __reduce__(self) -> Any:
        os.kill(os.getpid(), signal.SIGKILL)


class KillsWhenUnpickled:
    def __reduce__(self) -> Any:
        return kill_itself, ()


def kill_itself() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@TASK_IS_PICKLED
def test_rank_that_is_killed_before_its_function_says_so(method: str) -> None:
    with pytest.raises(nbmp.ProcessExitedException, match="It was starting or unpickling its task") as raised:
        nbmp.launch(functions.give, (KillsWhenUnpickled(),), start_method=method)
    assert raised.value.msg.startswith("process 0 terminated with signal SIGKILL\nIt was ")


def leave_while_running(rank: int) -> None:
    sys.exit(4)


@pytest.mark.parametrize(
    ("function", "stage"), [(kill_while_pickled, "pickling its result"), (leave_while_running, "running its function")]
)
def test_rank_that_ends_says_what_it_was_doing(method: str, function: Any, stage: str) -> None:
    with pytest.raises(nbmp.ProcessExitedException) as raised:
        nbmp.launch(function, start_method=method)
    assert raised.value.failures[0].stage == stage
    assert (f"It was {stage}." in str(raised.value)) is (stage != "running its function")
