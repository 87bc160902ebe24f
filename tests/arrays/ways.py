"""The ways that an array takes to another process and back. What runs there stands here, found by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import nbmp

WAYS = ("queue", "pipe", "launch", "pool")
PATIENCE = 20


def there(way: str, method: str, function: Callable[[Any], Any], item: Any) -> Any:
    """Return what `function` returns in another process. Its argument goes by this way, the result comes by it."""
    if way == "launch":
        return nbmp.launch(_call, (function, item), start_method=method)[0]
    if way == "pool":
        with nbmp.Pool(1, start_method=method) as pool:
            result = pool.apply(function, (item,))
            pool.close()
            pool.join()
        return result
    return _over_ends(way, method, function, item)


def _over_ends(way: str, method: str, function: Callable[[Any], Any], item: Any) -> Any:
    if way == "queue":
        requests, answers = nbmp.Queue(), nbmp.Queue()
        context = nbmp.start_processes(_answer, (function, requests, answers), join=False, start_method=method)
        requests.put(item)
        result = answers.get(timeout=PATIENCE)
    else:
        here, end = nbmp.Pipe()
        context = nbmp.start_processes(_answer_pipe, (function, end), join=False, start_method=method)
        with here, end:
            here.send(item)
            assert here.poll(PATIENCE)
            result = here.recv()
    assert context is not None
    assert context.join(PATIENCE)
    return result


def _call(rank: int, function: Callable[[Any], Any], item: Any) -> Any:
    return function(item)


def _answer(rank: int, function: Callable[[Any], Any], requests: Any, answers: Any) -> None:
    answers.put(function(requests.get(timeout=PATIENCE)))


def _answer_pipe(rank: int, function: Callable[[Any], Any], end: Any) -> None:
    end.send(function(end.recv()))


def give_back(item: Any) -> Any:
    return item


def fill(views: list[Any]) -> None:
    """Write to every view, each its own number."""
    for index, view in enumerate(views):
        view[...] = index + 1


def write_through_overlap(pair: Any) -> float:
    """Write through one array, return what the other shows."""
    left, right = pair
    left[-1] = 6
    return float(right[0])


def mark_and_pass_on(rank: int, place: int, source: Any, target: Any) -> None:
    """Leave a mark in an array and send it on."""
    array = source.get(timeout=PATIENCE)
    array[place] = place
    target.put(array)
