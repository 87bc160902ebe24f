"""The stop button, at random moments of what blocks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import nbmp
from tests.soak import work
from tests.soak.chance import Chance
from tests.soak.signals import interrupted


def press(chance: Chance, action: Callable[[], Any], longest: float = 0.4) -> None:
    again = chance.moment(0.5) if chance.random.random() < 0.2 else None
    at_work = interrupted(action, chance.moment(longest), group=chance.random.random() < 0.5, again=again)
    chance.counts.update({"interrupts": 1 if again is None else 2, "interrupts too late": not at_work})


def a_launch(chance: Chance) -> None:
    """Its ranks are gone, also those that take no notice; the next launch works."""
    chance.strategy()
    target = chance.random.choice((work.wait, work.wait_stubbornly, work.compute, work.wait_a_moment))
    ranks, method = chance.ranks(), chance.method()
    press(chance, lambda: nbmp.start_processes(target, (), ranks, start_method=method))
    assert nbmp.launch(work.check, ([chance.anything(0)],), 2, start_method=method) == [0, 1]
    chance.counts.update(launches=2, ranks=ranks + 2)


def a_pool(chance: Chance) -> None:
    """While it is made, works or ends; one that was there before goes on."""
    chance.strategy()
    method, count = chance.method(), chance.random.choice((10, 30, 10_000))
    if chance.random.random() < 0.5:

        def whole() -> None:
            with nbmp.Pool(2, start_method=method) as pool:
                pool.map(work.sleepy_double, range(count), chunksize=1)

        press(chance, whole)
    else:
        with nbmp.Pool(2, start_method=method) as pool:
            press(chance, lambda: pool.map(work.sleepy_double, range(count), chunksize=1))
            assert pool.map(work.double, [1, 2]) == [2, 4]
    chance.counts.update(pools=1)


def a_queue(chance: Chance) -> None:
    """In `put` and `get`, and the queue is whole afterwards: nothing came twice, order is kept."""
    chance.strategy()
    line = nbmp.Queue()
    payload, count = chance.private(0), chance.random.choice((300, 10**9))
    sent = 0
    received = -1

    def back_and_forth() -> None:
        nonlocal sent, received
        while sent < count:
            line.put((sent, payload))
            sent += 1
            number, _ = line.get(timeout=50)
            assert number >= received, (number, received)
            received = number

    press(chance, back_and_forth, 0.1)
    line.put("end")
    while (taken := line.get(timeout=50)) != "end":
        assert work.is_full(taken[1], 0)
    chance.counts.update(messages=sent)
