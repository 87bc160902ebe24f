"""Launches that end well."""

from __future__ import annotations

import nbmp
from tests.soak import work
from tests.soak.chance import Chance


def launch(chance: Chance) -> None:
    """Ranks look at arguments of all kinds and return what they should."""
    chance.strategy()
    things = [chance.anything(i) for i in range(chance.random.randrange(6))]
    ranks, method = chance.ranks(), chance.method()
    results = nbmp.launch(work.check, (things,), ranks, start_method=method)
    assert results == list(range(ranks)), results
    chance.counts.update(launches=1, ranks=ranks)


def several(chance: Chance) -> None:
    """Launches at the same time, joined in another order; one of them stopped."""
    contexts = []
    for _ in range(chance.random.randrange(2, 5)):
        ranks = chance.ranks()
        arguments = ([chance.anything(0)], chance.moment())
        method = chance.method()
        contexts.append(nbmp.start_processes(work.check, arguments, ranks, join=False, start_method=method))
        chance.counts.update(launches=1, ranks=ranks)
    stopped = nbmp.start_processes(work.wait, (), 2, join=False, start_method=chance.method())
    chance.counts.update(launches=1, ranks=2, stopped=2)
    chance.random.shuffle(contexts)
    for context in contexts:
        assert context is not None
        while not context.join(timeout=0.05):
            pass
        assert context.results == list(range(context.world_size))
    assert stopped is not None
    stopped.stop(1.0)
    assert all(record.state == "stopped" for record in stopped.ranks), stopped


def output(chance: Chance) -> None:
    """Every line of either stream is kept, once, whole and in order."""
    lines, ranks = chance.random.choice((0, 10, 800)), chance.ranks()
    context = nbmp.start_processes(work.talk, (lines,), ranks, join=False, start_method=chance.method())
    assert context is not None
    assert context.join()
    for rank in range(ranks):
        written = context.output(rank).splitlines()
        out, err = work.lines_of(rank, lines)
        to_err = set(err)
        assert [line for line in written if line in to_err] == err, written
        assert [line for line in written if line not in to_err] == out, written
        chance.counts.update(lines=len(written))
    chance.counts.update(launches=1, ranks=ranks)
