"""Ranks that leave by an exit code: everything but 0 is a failure."""

from __future__ import annotations

from typing import Any

import pytest

import nbmp
from tests.launching.functions import leave, leave_at_once, leave_by_raising


@pytest.mark.parametrize("code", [(), (0,), (None,), (False,)], ids=str)
def test_exit_without_an_error_is_success_without_a_result(method: str, code: tuple[Any, ...]) -> None:
    assert nbmp.launch(leave, code, 2, start_method=method) == [None, None]


def test_bare_system_exit_is_success(method: str) -> None:
    assert nbmp.launch(leave_by_raising, (), 2, start_method=method) == [None, None]


@pytest.mark.parametrize("code", [1, 3, 123, 255, 256, 512, -1, True])
def test_exit_with_a_code_is_a_failure_with_that_code(method: str, code: int) -> None:
    with pytest.raises(nbmp.ProcessExitedException) as raised:
        nbmp.launch(leave, (code,), start_method=method)
    error = raised.value
    assert (error.exit_code, type(error.exit_code)) == (code, int)
    assert error.signal_name is None
    assert error.error_index == 0
    assert error.msg == str(error)
    assert error.msg.splitlines()[0] == f"process 0 terminated with exit code {int(code)}"


def test_exit_with_a_text_is_a_failure_that_shows_the_text(method: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(nbmp.ProcessExitedException, match="no such folder") as raised:
        nbmp.launch(leave, ("no such folder",), start_method=method)
    assert raised.value.exit_code == 1
    assert capsys.readouterr().err == "[0] no such folder\n"


def test_exit_with_another_object_shows_it(method: str) -> None:
    with pytest.raises(nbmp.ProcessExitedException, match=r"\[1, 2\]") as raised:
        nbmp.launch(leave, ([1, 2],), start_method=method)
    assert raised.value.exit_code == 1


@pytest.mark.parametrize("code", [1, 7, 255])
def test_os_exit_with_a_code_is_a_failure(method: str, code: int) -> None:
    with pytest.raises(nbmp.ProcessExitedException) as raised:
        nbmp.launch(leave_at_once, (code,), start_method=method)
    assert raised.value.exit_code == code
    assert raised.value.failures[0].exit_code == code


def test_os_exit_with_0_is_success_without_a_result(method: str) -> None:
    assert nbmp.launch(leave_at_once, (0,), 2, start_method=method) == [None, None]
