"""Every name of `multiprocessing` and `torch.multiprocessing` is there, at the front door and in each context."""

from __future__ import annotations

import multiprocessing
import queue
from types import ModuleType
from typing import Any

import pytest

import nbmp
import nbmp.reductions

TORCH = [
    *("ProcessContext", "ProcessException", "ProcessExitedException", "ProcessRaisedException", "SpawnContext"),
    *("init_reductions", "spawn", "start_processes"),
    *("get_all_sharing_strategies", "get_sharing_strategy", "set_sharing_strategy"),
]
"""Names of torch.multiprocessing 2.13 besides the standard library's."""
ERRORS = ("AuthenticationError", "BufferTooShort", "ProcessError", "TimeoutError")


@pytest.fixture(params=[None, "fork", "forkserver", "spawn"])
def context(request: pytest.FixtureRequest) -> Any:
    return nbmp.get_context(request.param)


def test_front_door_has_every_name_of_multiprocessing_and_of_torch() -> None:
    assert [name for name in (*multiprocessing.__all__, *TORCH) if name not in nbmp.__all__] == []


def test_dir_lists_the_public_names_only() -> None:
    modules = {"context", "cuda", "pool", "process", "queue", "reductions"}
    assert {name for name in dir(nbmp) if not name.startswith("__")} == {*nbmp.__all__, *modules}


def test_maker_of_arrays_that_only_numpy_has_is_named() -> None:
    with pytest.raises(AttributeError, match=r"no attribute 'arange': nbmp.share_memory\(np.arange\(...\)\)"):
        nbmp.arange  # noqa: B018
    with pytest.raises(AttributeError, match=r"no attribute 'lunch'$"):
        nbmp.lunch  # noqa: B018


def test_context_has_every_name_of_multiprocessing(context: Any) -> None:
    assert [name for name in multiprocessing.__all__ if not hasattr(context, name)] == []


def test_names_that_are_not_ours_are_the_same_objects(context: Any) -> None:
    for name in (*ERRORS, "current_process", "parent_process", "active_children", "reducer"):
        assert getattr(nbmp, name) is getattr(multiprocessing, name)
        assert getattr(context, name) is getattr(multiprocessing, name)


def test_parts_of_ours_are_in_the_context(context: Any) -> None:
    assert isinstance(context.Queue(), nbmp.Queue)
    assert isinstance(context.JoinableQueue(3), nbmp.JoinableQueue)
    assert isinstance(context.SimpleQueue(), nbmp.SimpleQueue)
    assert [type(end) for end in context.Pipe()] == [nbmp.Connection] * 2
    assert [end.writable for end in context.Pipe(False)] == [False, True]
    assert isinstance(context.Process(), nbmp.Process)
    bounded = context.Queue(1)
    bounded.put(1)
    with pytest.raises(queue.Full):
        bounded.put(2, block=False)


def test_context_of_a_method_has_it_and_the_others_at_hand(context: Any, method: str) -> None:
    assert context.get_context() is context
    assert context.get_context(method) is nbmp.get_context(method)
    assert nbmp.get_context(method).get_start_method() == method
    assert context.get_all_start_methods() == nbmp.get_all_start_methods() == ["fork", "forkserver", "spawn"]
    with pytest.raises(ValueError, match="cannot find context for 'thread'"):
        context.get_context("thread")
    with pytest.raises(ValueError, match="cannot set start method of concrete context"):
        nbmp.get_context(method).set_start_method(method)


@pytest.mark.parametrize("name", ["context", "pool", "process", "queue", "reductions"])
def test_modules_are_there_under_their_known_names(name: str) -> None:
    module = getattr(nbmp, name)
    assert isinstance(module, ModuleType)
    assert module.__name__ == f"nbmp.{name}"


def test_odds_and_ends_of_a_context(context: Any) -> None:
    assert context.cpu_count() == nbmp.cpu_count() >= 1
    assert context.get_logger() is multiprocessing.get_logger()
    context.freeze_support()
    context.allow_connection_pickling()
    assert context.RawValue("i", 3).value == 3
    assert context.RawArray("i", [1, 2])[:] == [1, 2]
    with pytest.raises(TypeError, match="list of strings"):
        context.set_forkserver_preload([1])
