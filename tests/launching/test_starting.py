"""A start that fails in the middle: said, and nothing is left. Limits are real, set in a process of their own."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

import nbmp
from nbmp.launching.methods import forkserver
from nbmp.launching.plan import Plan
from nbmp.launching.private import Descriptor
from nbmp.waiting import readable
from tests import scripts, unprivileged
from tests.launching import functions
from tests.waiting import until

PRELUDE = """
    import os, resource, sys, threading
    import nbmp, psutil
    from tests.launching import functions

    def noop(rank):
        return rank

    def settled():
        functions.settle()
        children = [c for c in psutil.Process().children() if c.status() != psutil.STATUS_ZOMBIE]
        server = sys.modules.get("nbmp.launching.methods.forkserver")
        helpers = 1 if server is not None and server.server_pid() in [c.pid for c in children] else 0
        return len(children) - helpers, threading.active_count()

    method = sys.argv[1]
    failures = (nbmp.StartError, nbmp.ProcessException)
    explained = 0
"""

PROCESSES = (
    PRELUDE
    + """
    def mine():
        listed = psutil.process_iter(["uids", "num_threads"])  # what ends meanwhile is left out
        return sum(p.info["num_threads"] for p in listed if p.info["uids"] and p.info["uids"].real == os.getuid())

    told = []
    for room in range(9):
        if method == "forkserver":
            from nbmp.launching.methods.forkserver import stop_server
            stop_server()  # it keeps the limit that it was started under
        resource.setrlimit(resource.RLIMIT_NPROC, (mine() + room, resource.getrlimit(resource.RLIMIT_NPROC)[1]))
        descriptors = len(os.listdir("/proc/self/fd"))
        try:
            outcome = nbmp.launch(noop, (), 4, start_method=method, timeout=20)
        except failures as error:
            outcome = type(error).__name__
            explained += outcome == "StartError" and "ulimit" in str(error)
        print(room, outcome, file=sys.stderr)
        told.append(outcome == [0, 1, 2, 3])
        assert settled() == (0, 1), (room, outcome, settled())
        assert len(os.listdir("/proc/self/fd")) <= descriptors + (method == "forkserver"), (room, outcome)
    print(told.count(False) > 2, explained > 1, told[-1])
"""
)

DESCRIPTORS = (
    PRELUDE
    + """
    nbmp.launch(noop, (), 1, start_method=method)  # helpers are there
    used = len(os.listdir("/proc/self/fd"))
    told = []
    for room in (*range(0, 48, 3), 100):
        resource.setrlimit(resource.RLIMIT_NOFILE, (used + room, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
        try:
            outcome = nbmp.launch(noop, (), 4, start_method=method, timeout=20)
        except failures as error:
            outcome = type(error).__name__
            explained += outcome == "StartError" and "ulimit" in str(error)
        resource.setrlimit(resource.RLIMIT_NOFILE, (1024, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
        print(room, outcome, file=sys.stderr)
        told.append(outcome == [0, 1, 2, 3])
        assert settled() == (0, 1), (room, outcome, settled())
        assert len(os.listdir("/proc/self/fd")) <= used, (room, outcome)
    print(told.count(False) > 2, explained > 1, told[-1])
"""
)


def test_limit_of_processes_reached_in_the_middle_leaves_nothing(method: str) -> None:
    done = unprivileged.run(PROCESSES, method)
    assert (done.returncode, done.stdout) == (0, "True True True\n"), done.stderr


def test_limit_of_open_files_reached_in_the_middle_leaves_nothing(method: str, tmp_path: Path) -> None:
    done = scripts.run(tmp_path, DESCRIPTORS, method)
    assert (done.returncode, done.stdout) == (0, "True True True\n"), done.stderr


def test_interpreter_that_is_not_there_is_named(tmp_path: Path) -> None:
    source = """
        import multiprocessing, os, nbmp, sys
        multiprocessing.set_executable("/no/such/python")
        used = len(os.listdir("/proc/self/fd"))
        try:
            nbmp.launch(print, (), 3, start_method=sys.argv[1])
        except OSError as error:
            print(error.filename)
        assert len(os.listdir("/proc/self/fd")) == used
    """
    for method in ("spawn", "forkserver"):
        assert scripts.output(tmp_path, source, method) == "/no/such/python\n"


@pytest.mark.timeout(30)
def test_fork_server_killed_between_its_fork_and_its_answer_is_told_at_once() -> None:
    nbmp.launch(functions.pid, start_method="forkserver")
    server = forkserver._server
    assert server is not None
    os.kill(server.pid, signal.SIGKILL)
    read, write = os.pipe()  # the rank that it has forked has the other end, so that nothing says that it is gone
    with pytest.raises(nbmp.StartError, match=f"pid {server.pid}. ended before it had started the rank"):
        forkserver.ServedLife(Descriptor(read), server)
    os.close(write)
    assert nbmp.launch(functions.give, (1,), start_method="forkserver") == [1]


@pytest.fixture
def server() -> int:
    """A fork server that runs, and begins nothing any more."""
    nbmp.launch(functions.pid, start_method="forkserver")
    pid = forkserver.server_pid()
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)
    return pid


def kill_and_wait(server: forkserver._Server) -> None:
    os.kill(server.pid, signal.SIGKILL)
    server._popen.wait()


def test_fork_server_killed_before_it_has_started_a_rank_is_replaced(
    server: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    wait = forkserver._await_answer

    def wait_for_the_dead(fd: int, asked: forkserver._Server) -> None:
        if asked.pid == server:
            kill_and_wait(asked)
        wait(fd, asked)

    monkeypatch.setattr(forkserver, "_await_answer", wait_for_the_dead)
    assert nbmp.launch(functions.give, (1,), 3, start_method="forkserver") == [1, 1, 1]
    assert forkserver.server_pid() != server


@pytest.mark.parametrize("asked_before", [0, 1])
def test_fork_server_killed_before_it_is_asked_for_all_ranks_is_replaced(
    asked_before: int, server: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = forkserver._request

    def request_after_a_kill(asked: forkserver._Server, plan: Plan) -> Descriptor:
        if asked.pid == server and plan.setup.rank == asked_before:
            kill_and_wait(asked)
        return request(asked, plan)

    monkeypatch.setattr(forkserver, "_request", request_after_a_kill)
    assert nbmp.launch(functions.give, (1,), 2, start_method="forkserver") == [1, 1]


def test_fork_server_that_is_killed_each_time_is_told(server: int, monkeypatch: pytest.MonkeyPatch) -> None:
    wait, killed = forkserver._await_answer, []

    def wait_for_the_dead(fd: int, asked: forkserver._Server) -> None:
        if asked.pid not in killed:
            os.kill(asked.pid, signal.SIGSTOP)  # it may have answered by now
            kill_and_wait(asked)
            killed.append(asked.pid)
        wait(fd, asked)

    monkeypatch.setattr(forkserver, "_await_answer", wait_for_the_dead)
    monkeypatch.setattr(forkserver, "_BOOT", "import time; time.sleep(60)  # {root} {channel} {preload}")
    with pytest.raises(nbmp.StartError, match="ended before it had started the rank") as raised:
        nbmp.launch(functions.give, (1,), 2, start_method="forkserver")
    assert type(raised.value) is nbmp.StartError
    assert killed[0] == server
    assert len(killed) == 2
    monkeypatch.undo()
    assert nbmp.launch(functions.give, (1,), 2, start_method="forkserver") == [1, 1]


@pytest.mark.parametrize("how", ["answered", "silent"])
def test_launch_is_repeated_as_a_whole_when_some_ranks_are_there(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    nbmp.launch(functions.pid, start_method="forkserver")
    first, request, asked, silent = forkserver.server_pid(), forkserver._request, [], []

    def request_and_kill(server: forkserver._Server, plan: Plan) -> Descriptor:
        asked.append(plan.process)
        pipe = request(server, plan)
        if server.pid == first and plan.setup.rank == 1:
            assert readable(pipe.fileno(), None)  # it is there
            kill_and_wait(server)
            if how == "silent":  # as one is that the server had no time any more to tell of
                silent.append(pipe)
                read, write = os.pipe()
                silent.append(Descriptor(write))
                return Descriptor(read)
        return pipe

    monkeypatch.setattr(forkserver, "_request", request_and_kill)
    assert nbmp.launch(functions.give, (1,), 3, start_method="forkserver") == [1, 1, 1]
    assert len(asked) == 6
    assert not any(process.is_alive() for process in asked[:3] if process.pid is not None)
    assert not silent or until(lambda: at_its_end(silent[0]))


def at_its_end(pipe: Descriptor) -> bool:
    """Return whether the rank that has the other end is gone."""
    return readable(pipe.fileno(), 0) and not os.read(pipe.fileno(), forkserver.ANSWER.size)
