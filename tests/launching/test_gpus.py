"""A GPU for each rank: a variable that is set before the rank imports anything. No GPU is needed to see that."""

from __future__ import annotations

import os

import pytest

import nbmp
from nbmp import platforms

VARIABLE = "CUDA_VISIBLE_DEVICES"


def mine(rank: int) -> str | None:
    return os.environ.get(VARIABLE)


def at_import(rank: int) -> str | None:
    from tests.launching import gpu_at_import

    return gpu_at_import.SEEN


def test_each_rank_gets_one_in_turn(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "3,GPU-5")
    assert nbmp.launch(mine, (), 3, start_method=method, gpus="all") == ["3", "GPU-5", "3"]
    assert nbmp.launch(mine, (), 2, start_method=method, gpus=[5, "1"]) == ["5", "1"]
    assert nbmp.launch(mine, (), 1, start_method=method) == ["3,GPU-5"]


def test_it_is_set_before_a_module_is_imported(method: str) -> None:
    assert nbmp.launch(at_import, (), 2, start_method=method, gpus=[7, 8]) == ["7", "8"]


def test_it_wins_over_env_and_leaves_this_process_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    assert nbmp.launch(mine, (), 1, env={VARIABLE: "9"}, gpus=[4]) == ["4"]
    assert VARIABLE not in os.environ


@pytest.mark.parametrize(
    ("setting", "names"),
    [
        ("", []),
        ("-1", []),
        ("2", ["2"]),
        ("1, 0", ["1", "0"]),
        ("1,-1,0", ["1"]),
        ("GPU-aa,GPU-bb", ["GPU-aa", "GPU-bb"]),
    ],
)
def test_visible_gpus_are_read_off_the_variable_as_cuda_does(
    setting: str, names: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, setting)
    assert platforms.visible_gpus() == names


def test_without_a_gpu_it_is_refused_before_anything_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "")
    with pytest.raises(nbmp.DeviceError, match="no NVIDIA GPU"):
        nbmp.launch(mine, (), 1, gpus="all")


@pytest.mark.parametrize("wrong", ["0", "both", [], [""]])
def test_what_is_no_choice_is_refused(wrong: object) -> None:
    with pytest.raises(ValueError, match="gpus is 'all' or a list"):
        nbmp.launch(mine, (), 1, gpus=wrong)  # type: ignore[arg-type]
