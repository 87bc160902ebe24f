"""Which forms of tests run: what is left out is covered by another form, and the list names what is there."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests import forms

METHODS = ("fork", "forkserver", "spawn")
STRATEGIES = ("file_descriptor", "file_system")


def item(file: str, **parameters: str) -> Any:
    """Return what stands for a test in one form; `mark` is one that it has."""
    mark = parameters.pop("mark", None)
    name = "-".join(parameters.values())
    return SimpleNamespace(
        path=forms.TESTS / file,
        nodeid=f"tests/{file}::test_it[{name}]",
        callspec=SimpleNamespace(id=name, params=parameters),
        get_closest_marker={mark: object()}.get,
    )


def runs(file: str, methods: tuple[str, ...], strategies: tuple[str, ...]) -> list[str]:
    """Return the forms that run of a test with these parameters and one more."""
    items = [
        item(file, method=method, other=other, strategy=strategy)
        for method, other, strategy in product(methods, ("a", "b"), strategies)
    ]
    left_out = [id(found) for found in forms.redundant(items)]
    return [found.callspec.id for found in items if id(found) not in left_out and "a" in found.callspec.params["other"]]


def test_what_is_left_out_is_covered_by_another_form() -> None:
    assert runs("channels/test_queue.py", METHODS, STRATEGIES) == [
        "fork-a-file_descriptor",
        "fork-a-file_system",
        "forkserver-a-file_descriptor",
    ]


@pytest.mark.parametrize(
    ("file", "methods", "strategies"),
    [
        ("channels/test_queue.py", ("fork", "spawn"), STRATEGIES[:1]),
        ("channels/test_queue.py", ("spawn",), STRATEGIES),
        ("channels/test_queue.py", ("forkserver",), STRATEGIES),
        ("arrays/test_round_trips.py", METHODS, STRATEGIES),
        ("field_reports/test_arrays.py", METHODS, STRATEGIES),
    ],
)
def test_everything_else_runs(file: str, methods: tuple[str, ...], strategies: tuple[str, ...]) -> None:
    assert len(runs(file, methods, strategies)) == len(methods) * len(strategies)


def test_the_list_names_what_is_there() -> None:
    assert all((Path(forms.TESTS) / name).exists() for name in forms.ALL_FORMS)


def test_what_belongs_to_the_whole_table_only_is_left_out() -> None:
    items = [
        item("hardening/test_failure_matrix.py", other=other, mark=mark) for other, mark in (("a", "whole"), ("b", ""))
    ]
    assert forms.redundant(items) == items[:1]
