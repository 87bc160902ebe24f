"""What cannot be pickled: named by its place, at once, before anything is started."""

from __future__ import annotations

import io
import pickle
import threading
import time
from collections import namedtuple
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest

import nbmp
from tests.launching import functions

pytestmark = pytest.mark.parametrize("method", ["forkserver", "spawn"])


class Model:
    def __init__(self) -> None:
        self.weights = [1, 2, 3]
        self.lock = threading.Lock()

    def method(self, rank: int) -> None: ...


class Holder:
    def __init__(self, model: Any) -> None:
        self.model = model


class Key:
    """Can be a key, and cannot be pickled; nor shown, if it is to be so."""

    def __init__(self, shown: str = "") -> None:
        self.shown = shown
        self.lock = threading.Lock()

    def __repr__(self) -> str:
        if not self.shown:
            raise ValueError("not to be shown")
        return self.shown


Fields = namedtuple("Fields", "good bad")


def generator() -> Any:
    return (index for index in range(3))


def enclosing(secret: Any) -> Any:
    def inner(rank: int, *args: Any) -> Any:
        return secret

    return inner


def with_default(lock: Any) -> Any:
    def inner(rank: int, *args: Any, given: Any = lock) -> Any:
        return given

    return inner


@pytest.mark.parametrize(
    ("bad", "path"),
    [
        (Model, "args[1].lock"),
        (lambda: Holder(Model()), "args[1].model.lock"),
        (lambda: {"layers": [Holder(Model())]}, "args[1]['layers'][0].model.lock"),
        (lambda: ([1, 2], (3, threading.Lock())), "args[1][1][1]"),
        (lambda: Fields(1, threading.Lock()), "args[1].bad"),
        (generator, "args[1]"),
        (threading.current_thread, "args[1]"),
        (lambda: partial(print, threading.Lock()), "args[1].args[0]"),
        (lambda: enclosing(Model()), "args[1] -> secret (a variable of the enclosing function).lock"),
        (lambda: Model().method, "args[1].__self__.lock"),
        (lambda: {"a": 1, Key("mine"): 2}, "args[1] (its key mine).lock"),
        (lambda: {"a": [{(3, Key("mine")): 2}]}, "args[1]['a'][0] (its key (3, mine))[1].lock"),
        (lambda: {Key(): 2}, "args[1] (its key <Key>).lock"),
        (lambda: {Key("x" * 100): Model()}, f"args[1][{'x' * 80}...].lock"),
        (lambda: {Key()}, "args[1]{<Key>}.lock"),
    ],
)
def test_place_of_the_part_that_refuses_is_named(method: str, bad: Any, path: str) -> None:
    children = len(psutil.Process().children())
    begun = time.monotonic()
    with pytest.raises(nbmp.CannotTravelError) as raised:
        nbmp.launch(functions.give, (1, bad()), 3, start_method=method)
    assert time.monotonic() - begun < 2
    assert raised.value.path == path or raised.value.path.startswith(path + "._")
    assert str(raised.value).startswith(raised.value.path + " cannot travel to another process: ")
    assert len(psutil.Process().children()) == children


def test_function_that_cannot_travel_names_its_variable(method: str) -> None:
    with pytest.raises(nbmp.CannotTravelError) as raised:
        nbmp.launch(enclosing(threading.Lock()), start_method=method)
    assert raised.value.path == "fn -> secret (a variable of the enclosing function)"


def test_keyword_default_that_cannot_travel_is_named(method: str) -> None:
    with pytest.raises(nbmp.CannotTravelError, match="given"):
        nbmp.launch(with_default(threading.Lock()), start_method=method)


def test_open_file_is_named(method: str, tmp_path: Path) -> None:
    with open(tmp_path / "f", "w") as file, pytest.raises(nbmp.CannotTravelError, match=r"^args\[0\]\.file cannot"):
        nbmp.launch(functions.give, (namedtuple("Log", "file")(file),), start_method=method)


def test_error_is_caught_as_what_pickle_raises(method: str) -> None:
    for kind in (TypeError, pickle.PicklingError):
        with pytest.raises(kind):
            nbmp.launch(functions.give, (threading.Lock(),), start_method=method)


class RaisesWhenPickled:
    def __reduce__(self) -> Any:
        raise ZeroDivisionError("own reason")


def test_reason_of_an_object_that_raises_is_told(method: str) -> None:
    with pytest.raises(nbmp.CannotTravelError, match="own reason") as raised:
        nbmp.launch(functions.give, ([RaisesWhenPickled()],), start_method=method)
    assert raised.value.path == "args[0][0]"
    assert isinstance(raised.value.__cause__, ZeroDivisionError)


def test_search_in_a_large_object_is_bounded(method: str) -> None:
    tangle: list[Any] = [[str(index), [index] * 50] for index in range(30_000)]
    tangle.append(threading.Lock())
    begun = time.monotonic()
    with pytest.raises(nbmp.CannotTravelError, match=r"^args\[0\]"):
        nbmp.launch(functions.give, (tangle,), start_method=method)
    assert time.monotonic() - begun < 10


def test_object_that_contains_itself_is_no_problem(method: str) -> None:
    loop: list[Any] = [threading.Lock()]
    loop.append(loop)
    with pytest.raises(nbmp.CannotTravelError, match=r"^args\[0\]\[0\]"):
        nbmp.launch(functions.give, (loop,), start_method=method)


def test_refused_task_leaves_no_descriptors(method: str) -> None:
    with pytest.raises(nbmp.CannotTravelError):
        nbmp.launch(functions.give, (nbmp.zeros(3), io.StringIO, threading.Lock()), start_method=method)


def test_open_file_is_refused_as_by_multiprocessing(method: str, tmp_path: Path) -> None:
    (tmp_path / "notes").write_text("a line")
    with open(tmp_path / "notes") as notes:
        refused = pytest.raises(nbmp.CannotTravelError, match=r"an open file .* \(TextIOWrapper '.*notes'\): open it")
        with refused:
            nbmp.launch(functions.give, (notes,), start_method=method)
        with closing(nbmp.SimpleQueue()) as queue, refused:
            queue.put({1: notes})


def test_cause_is_kept_only_where_it_is_of_the_users_code(method: str) -> None:
    with pytest.raises(nbmp.CannotTravelError) as raised:
        nbmp.launch(functions.give, (threading.Lock(),), start_method=method)
    assert raised.value.__cause__ is None
    assert raised.value.__suppress_context__
