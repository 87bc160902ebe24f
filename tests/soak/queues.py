"""Queues between ranks."""

from __future__ import annotations

from typing import Any

import nbmp
from tests.soak import work
from tests.soak.chance import Chance

PATIENCE = 50.0


def make(chance: Chance) -> Any:
    kind = chance.random.randrange(3)
    if kind == 0:
        return nbmp.Queue(chance.random.choice((0, 1, 10)))
    return nbmp.SimpleQueue() if kind == 1 else nbmp.JoinableQueue()


def payload(chance: Chance) -> list[Any]:
    """Return some things; thing i is full of i."""
    return [chance.anything(i) for i in range(chance.random.randrange(1, 8))]


def ended(*contexts: Any) -> None:
    for context in contexts:
        assert context.join(timeout=PATIENCE), context


def queue(chance: Chance) -> None:
    """Producers here or there, consumers there: all arrives, and is whole."""
    chance.strategy()
    source, done = make(chance), nbmp.Queue()
    things, count = payload(chance), chance.random.choice((1, 30, 200))
    producers, consumers = chance.ranks(), chance.ranks()
    method = chance.method()
    takers = nbmp.start_processes(work.consume, (source, done), consumers, join=False, start_method=method)
    makers = nbmp.start_processes(
        work.produce, (source, count, things), producers, join=False, start_method=chance.method()
    )
    ended(makers)
    for _ in range(consumers):
        source.put(None)
    ended(takers)
    assert sum(done.get(timeout=PATIENCE) for _ in range(consumers)) == producers * count
    chance.counts.update(launches=2, ranks=producers + consumers, messages=producers * count)


def chain(chance: Chance) -> None:
    """Through three processes, and back to where it came from."""
    chance.strategy()
    first, second, third = make(chance), make(chance), make(chance)
    one = nbmp.start_processes(work.pass_on, (first, second), join=False, start_method=chance.method())
    two = nbmp.start_processes(work.pass_on, (second, third), join=False, start_method=chance.method())
    things = payload(chance)
    for index, thing in enumerate(things):
        first.put((0, index, thing))
        _, number, back = third.get()
        assert number == index
        assert work.is_full(back, index), (index, back)
    first.put(None)
    assert third.get() is None
    ended(one, two)
    chance.counts.update(launches=2, ranks=2, messages=3 * len(things))


def to_itself(chance: Chance) -> None:
    """What this process puts it gets, after it has closed what it put; some is thrown away unread."""
    chance.strategy()
    line = nbmp.Queue()
    things = payload(chance)
    for thing in things:
        line.put(thing)
    for index in range(chance.random.randrange(len(things) + 1)):
        assert work.is_full(line.get(timeout=PATIENCE), index)
        chance.counts.update(messages=1)
    if chance.random.random() < 0.5:
        line.close()
        line.join_thread()
