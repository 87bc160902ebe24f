"""SIGKILL at random moments: to ranks, workers, the fork server, the manager of named shared memory."""

from __future__ import annotations

import psutil
import pytest

import nbmp
from nbmp.launching.methods import forkserver
from tests import leaks
from tests.soak import queues, work
from tests.soak.chance import Chance
from tests.soak.signals import kill_meanwhile
from tests.waiting import is_running, until


def a_rank(chance: Chance) -> None:
    """Whenever it is killed: its launch says so, the others are stopped."""
    ranks = chance.ranks()
    which = chance.random.randrange(ranks)
    target = chance.random.choice((work.wait, work.compute, work.wait_stubbornly))
    context = nbmp.start_processes(target, (), ranks, join=False, start_method=chance.method())
    assert context is not None
    killing = kill_meanwhile(lambda: context.pids()[which], chance.moment())
    with killing, pytest.raises(nbmp.ProcessExitedException) as caught:
        context.join(timeout=50, grace_period=0.5)
    assert (caught.value.error_index, caught.value.signal_name) == (which, "SIGKILL"), caught.value
    assert not any(is_running(pid) for pid in context.pids() if pid), context
    chance.counts.update(launches=1, ranks=ranks, kills=1)


def at_a_queue(chance: Chance) -> None:
    """A process killed in the middle of `put` or `get` blocks nobody."""
    chance.strategy()
    line, done = queues.make(chance), nbmp.Queue()
    things = [chance.anything(0)]
    method = chance.method()
    makers = nbmp.start_processes(work.produce, (line, 10**6, things), 1, join=False, start_method=method)
    victims = nbmp.start_processes(work.consume, (line, done), 1, join=False, start_method=chance.method())
    assert makers is not None
    assert victims is not None
    whom = chance.random.choice((makers, victims))
    with kill_meanwhile(lambda: whom.pids()[0], chance.moment()):
        until(lambda: not is_running(whom.pids()[0] or 0), 20)
    for context in (makers, victims):
        context.stop(0.2)
    marker = (0, 0, [-1] * 3)
    taker = nbmp.start_processes(_until_marker, (line, done), 1, join=False, start_method="fork")
    line.put(marker)
    assert done.get(timeout=50) == "marker"
    queues.ended(taker)
    chance.counts.update(launches=3, ranks=3, kills=1)


def _until_marker(rank: int, line: object, done: nbmp.Queue) -> None:
    while True:
        _, _, thing = line.get()  # type: ignore[attr-defined]
        if isinstance(thing, list) and thing[:1] == [-1]:
            done.put("marker")
            return
        assert work.is_full(thing, 0)


def a_worker(chance: Chance) -> None:
    """A worker's death fails one task at most, and says so."""
    with nbmp.Pool(2, start_method=chance.method()) as pool:
        results = [pool.apply_async(work.sleepy_double, (number,)) for number in range(60)]
        with kill_meanwhile(lambda: pool._workers._workers[0].record.pid, chance.moment()) as killed:
            bad = 0
            for number, result in enumerate(results):
                try:
                    assert result.get(timeout=50) == 2 * number
                except nbmp.WorkerExitedError:
                    bad += 1
        assert bad <= len(killed) <= 1, bad
        assert pool.map(abs, [-1, -2]) == [1, 2]
    chance.counts.update({"pools": 1, "tasks": 62, "kills": len(killed), "tasks lost": bad})


def the_fork_server(chance: Chance) -> None:
    """Whatever was asked of it fails with a clear error or works; the next launch works."""
    nbmp.launch(work.check, ([],), start_method="forkserver")

    def server() -> int | None:
        return forkserver._server.pid if forkserver._server else None

    with kill_meanwhile(server, chance.moment(0.15)) as killed:
        for _ in range(3):
            try:
                nbmp.launch(work.check, ([],), 2, start_method="forkserver")
            except (nbmp.StartError, nbmp.ProcessExitedException):
                chance.counts.update({"launches failed with the fork server": 1})
    assert nbmp.launch(work.check, ([],), 2, start_method="forkserver") == [0, 1]
    chance.counts.update(launches=5, ranks=9, kills=len(killed))


def the_manager(chance: Chance) -> None:
    """Named arrays live on; another manager takes its place and removes what is over."""
    nbmp.set_sharing_strategy("file_system")
    kept = chance.shared(5)
    session = leaks.own_session()
    assert session is not None
    name = session.name
    found = [p.pid for p in psutil.process_iter(["cmdline"]) if f"/dev/shm/{name}" in (p.info["cmdline"] or [])]
    with kill_meanwhile(lambda: found[0] if found else None, chance.moment(0.1)) as killed:
        for _ in range(3):
            nbmp.launch(work.check, ([chance.shared(0), chance.private(1)],), 2, start_method=chance.method())
    assert work.is_full(kept, 5)
    assert nbmp.launch(work.check, ([chance.shared(0)],), 1, start_method="fork") == [0]
    chance.counts.update(launches=4, ranks=7, kills=len(killed))
