"""Which forms of a test run. Most tests run under each start method, many under each sharing strategy: not every
combination proves something new, and a new interpreter takes a second.

    spawn beside forkserver         both are new interpreters, which get their task and give results by the same
                                    messages; they differ in how they begin
    file_system beside spawn and    an array reaches a rank as a handle in such a message; which kind of handle it is
    forkserver                      has nothing to do with how the rank began

    the marker `whole`              one cell of a large table, one more look of a page: others of its kind run always

So a test that has both runs under `spawn` only where `ALL_FORMS` says so: how ranks, processes and pools begin and end,
one file of arrays, the field reports. The same for `file_system` beside another start method than `fork`. No test loses
its only form. `--all-forms` runs all, and so does naming tests (`::`) or choosing them (`-k`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any

import pytest

ALL_FORMS = {
    "arrays/test_round_trips.py",
    "field_reports/",
    "launching/test_crashes.py",
    "launching/test_environment.py",
    "launching/test_exit_of_launcher.py",
    "launching/test_exits.py",
    "launching/test_interrupt.py",
    "launching/test_lifeline.py",
    "launching/test_scripts.py",
    "notebook/test_body.py",
    "pool/test_ends.py",
    "processes/test_process.py",
    "processes/test_programs.py",
    "processes/test_start_methods.py",
}
"""Files, and folders, whose tests run in all their forms."""

TESTS = Path(__file__).parent


def told_to_run_all(config: pytest.Config) -> bool:
    """Return whether whoever began this run wants all forms."""
    return bool(config.option.all_forms or config.option.keyword or any("::" in word for word in config.args))


def redundant(items: Iterable[pytest.Item]) -> list[pytest.Item]:
    """Return the tests that prove nothing that another of these does not."""
    items = list(items)
    forms = {_form(item): item for item in items if hasattr(item, "callspec")}
    covered = [item for form, item in forms.items() if _is_covered(form, forms) and not _is_kept(item)]
    return covered + [item for item in items if item.get_closest_marker("whole") and item not in covered]


def _form(item: Any) -> tuple[Any, str, str]:
    """Return which test it is, its other parameters included, its start method and its strategy."""
    method, strategy = (str(item.callspec.params.get(name, "")) for name in ("method", "strategy"))
    others = item.callspec.id.split("-")
    for word in (method, strategy):
        if word in others:
            others.remove(word)
    return (item.nodeid.partition("[")[0], *others), method, strategy


def _is_covered(form: tuple[Any, str, str], forms: Collection[tuple[Any, str, str]]) -> bool:
    test, method, strategy = form
    if method == "spawn" and (test, "forkserver", strategy) in forms:
        return True
    by_name = strategy == "file_system" and method in ("spawn", "forkserver")
    return by_name and (test, "fork", strategy) in forms and (test, method, "file_descriptor") in forms


def _is_kept(item: pytest.Item) -> bool:
    path = item.path.relative_to(TESTS)
    return path.as_posix() in ALL_FORMS or f"{path.parent.as_posix()}/" in ALL_FORMS
