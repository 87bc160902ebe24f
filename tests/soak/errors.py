"""Errors: of a rank, of what cannot be sent, of a task."""

from __future__ import annotations

import threading

import pytest

import nbmp
from tests.soak import work
from tests.soak.chance import Chance

HOW = {
    "raise": "ZeroDivisionError|division by zero",
    "raise odd": "diverged at step 3",
    "raise locked": "has a lock",
    "exit": "5",
    "_exit": "6",
    "kill": "SIGKILL",
    "segv": "SIGSEGV",
}


def of_a_rank(chance: Chance) -> None:
    how, ranks = chance.random.choice(list(HOW)), chance.ranks()
    which, method = chance.random.randrange(ranks), chance.method()
    arguments = (how, which, chance.moment())
    with pytest.raises(nbmp.ProcessException, match=HOW[how]) as caught:
        nbmp.start_processes(work.fail, arguments, ranks, start_method=method)
    assert caught.value.error_index == which
    assert isinstance(caught.value, nbmp.ProcessRaisedException) == how.startswith("raise"), caught.value
    chance.counts.update(launches=1, ranks=ranks, errors=1)


def before_the_start(chance: Chance) -> None:
    """What cannot be sent is refused, here or in the rank."""
    kind, method = chance.random.randrange(3), chance.random.choice(("forkserver", "spawn"))
    if kind == 0:
        with pytest.raises(nbmp.CannotTravelError, match="lock"):
            nbmp.start_processes(work.check, ([threading.Lock()],), 2, start_method=method)
    elif kind == 1:
        with pytest.raises(nbmp.CannotTravelError, match="lock"):
            nbmp.Queue().put([1, {"a": threading.Lock()}])
    else:
        with pytest.raises(nbmp.ProcessRaisedException, match="lock"):
            nbmp.launch(work.lock_result, (), 2, start_method=chance.method())
        chance.counts.update(launches=1, ranks=2)
    chance.counts.update(errors=1)


def in_a_pool(chance: Chance) -> None:
    """A bad task fails alone, and the pool goes on."""
    how = chance.random.choice(list(HOW))
    bad = chance.random.randrange(10)
    with nbmp.Pool(2, start_method=chance.method()) as pool:
        results = [pool.apply_async(work.maybe, (number, bad, how)) for number in range(10)]
        for number, result in enumerate(results):
            if number == bad:
                with pytest.raises((Exception, SystemExit), match=HOW[how]):
                    result.get(timeout=50)
            else:
                assert result.get(timeout=50) == number
        assert pool.map(abs, [-1, -2]) == [1, 2]
    chance.counts.update(pools=1, tasks=12, errors=1)
