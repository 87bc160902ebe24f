"""`nbmp.Process` means what `multiprocessing.Process` means, started by every method."""

from __future__ import annotations

import gc
import os
import signal
import threading
import weakref
from collections.abc import Callable
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nbmp
from tests.processes import functions
from tests.waiting import PATIENCE, content, is_running, until

Make = Callable[..., Any]


@pytest.fixture
def make(method: str) -> Make:
    """Return what makes a process: the class of the method's context."""
    made: Make = nbmp.get_context(method).Process
    return made


def ended(process: Any) -> Any:
    process.start()
    process.join(PATIENCE)
    return process.exitcode


def test_process_is_told_its_arguments_and_knows_itself(make: Make, method: str) -> None:
    answers = nbmp.Queue()
    process = make(target=functions.describe, args=(answers, 1, "two"), kwargs={"three": [3]}, name="worker bee")
    process.start()
    told = answers.get(timeout=PATIENCE)
    process.join()
    assert (told["args"], told["kwargs"]) == ((1, "two"), {"three": [3]})
    assert (told["name"], told["daemon"], told["alive"], told["children"]) == ("worker bee", False, True, [])
    assert told["pid"] == told["getpid"] == process.pid == process.ident
    assert told["authkey"] == bytes(nbmp.current_process().authkey) == bytes(process.authkey)
    assert told["kind"] == type(process).__name__
    assert told["rank"] is None


def test_life_of_a_process_seen_from_outside(make: Make, tmp_path: Path) -> None:
    process = make(target=functions.ready_and_wait, args=(str(tmp_path / "ready"),))
    assert [process.pid, process.exitcode, process.is_alive(), process.daemon] == [None, None, False, False]
    assert process not in nbmp.active_children()
    with pytest.raises(ValueError, match="not started"):
        process.sentinel  # noqa: B018
    assert "initial" in repr(process)
    process.start()
    assert process.exitcode is None
    assert process.is_alive()
    assert process in nbmp.active_children()
    assert "started" in repr(process)
    pid = int(content(tmp_path / "ready"))
    assert pid == process.pid
    process.join(0)
    process.join(-1)
    assert process.is_alive()
    process.terminate()
    process.join(PATIENCE)
    assert [process.exitcode, process.is_alive()] == [-signal.SIGTERM, False]
    assert process not in nbmp.active_children()
    assert "stopped exitcode=-SIGTERM" in repr(process)
    assert not is_running(pid)


def test_kill_ends_a_process_that_terminate_does_not(make: Make, tmp_path: Path) -> None:
    process = make(target=functions.ready_and_wait, args=(str(tmp_path / "ready"),), kwargs={"deaf": True})
    process.start()
    content(tmp_path / "ready")
    process.terminate()
    process.join(0.2)
    assert process.is_alive()
    process.kill()
    process.join(PATIENCE)
    assert process.exitcode == -signal.SIGKILL


@pytest.mark.parametrize(
    ("code", "expected"), [(None, 0), (0, 0), (7, 7), (True, 1), (False, 0), ("a message", 1), ([1, 2], 1), (256, 1)]
)
def test_exit_code_of_sys_exit(make: Make, code: Any, expected: int) -> None:
    assert ended(make(target=functions.leave, args=(code,))) == expected


def test_exit_code_of_other_ends(make: Make) -> None:
    assert ended(make(target=functions.nothing)) == 0
    assert ended(make(target=functions.leave_hard, args=(9,))) == 9
    assert ended(make(target=functions.end_by, args=(signal.SIGUSR1,))) == -signal.SIGUSR1
    assert ended(make()) == 0  # no target


def test_exception_is_printed_with_the_frames_of_the_user_and_the_name(
    make: Make, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ended(make(target=functions.fail, args=("what went wrong",), name="loser")) == 1
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "[loser] Process loser:"
    assert lines[-1] == "[loser] ValueError: what went wrong"
    files = [line for line in lines if line.startswith("[loser]   File ")]
    assert len(files) == 1
    assert "functions.py" in files[0]


def test_what_it_prints_is_shown_by_the_end_of_join(make: Make, capsys: pytest.CaptureFixture[str]) -> None:
    ended(make(target=functions.say, args=("one\ntwo",), name="talker"))
    assert capsys.readouterr().out == "[talker] one\n[talker] two\n"


def test_subclass_overrides_run(method: str) -> None:
    context = nbmp.get_context(method)

    class Doubler(context.Process):  # type: ignore[name-defined, misc]
        def __init__(self, there: Any, value: Any) -> None:
            super().__init__(name="doubler")
            self.there = there
            self.value = value

        def run(self) -> None:
            self.there.put((self.name, nbmp.current_process() is self, self.value * 2))

    there = nbmp.SimpleQueue()
    process = Doubler(there, np.arange(3))
    process.start()
    name, is_current, value = there.get()
    process.join()
    assert (name, is_current, value.tolist(), process.exitcode) == ("doubler", True, [0, 2, 4], 0)


def test_run_can_be_called_here(make: Make) -> None:
    called: list[int] = []
    make(target=called.append, args=(1,)).run()
    assert called == [1]


def test_process_starts_once_and_only_where_it_was_made(make: Make) -> None:
    process = make(target=functions.nothing)
    with pytest.raises(AssertionError, match="can only join a started process"):
        process.join()
    process.start()
    with pytest.raises(AssertionError, match="cannot start a process twice"):
        process.start()
    process.join()


def test_closed_process_says_so(make: Make, tmp_path: Path) -> None:
    process = make(target=functions.ready_and_wait, args=(str(tmp_path / "ready"),))
    process.start()
    with pytest.raises(ValueError, match="still running"):
        process.close()
    process.kill()
    process.join()
    process.close()
    for use in (process.is_alive, process.join, process.terminate, process.start):
        with pytest.raises(ValueError, match="process object is closed"):
            use()
    process.close()
    assert "closed" in repr(process)


def test_process_that_was_never_joined_can_be_closed(make: Make) -> None:
    process = make(target=functions.nothing)
    process.start()
    assert until(lambda: not process.is_alive())
    process.close()


def test_sentinel_becomes_ready_with_the_end(make: Make) -> None:
    go = nbmp.Event()
    process = make(target=go.wait)
    process.start()
    assert isinstance(process.sentinel, int)
    assert wait([process.sentinel], 0) == []
    go.set()
    assert wait([process.sentinel], PATIENCE) == [process.sentinel]
    process.join()


def test_names_are_given_in_order_and_nested(make: Make, method: str) -> None:
    first, second = make(), make()
    kind, _, number = first.name.partition("-")
    assert kind == type(first).__name__
    assert second.name == f"{kind}-{int(number) + 1}"
    second.name = "another"
    assert second.name == "another"
    with pytest.raises(AssertionError):
        second.name = 3
    answers = nbmp.SimpleQueue()
    process = make(target=functions.names_below, args=(answers, 2, method), name="top")
    process.start()
    names = [answers.get() for _ in range(7)]
    process.join()
    below = f"{kind}-{int(number) + 2}"
    assert names == ["top", *(f"{below}:{path}" for path in ("1", "1:1", "1:2", "2", "2:1", "2:2"))]


def test_parent_of_the_process_is_known_there(make: Make) -> None:
    assert nbmp.parent_process() is None
    answers = nbmp.SimpleQueue()
    process = make(target=functions.describe_parent, args=(answers,))
    process.start()
    assert answers.get() == (os.getpid(), nbmp.current_process().name, True, True)
    process.join()


def test_daemon_may_have_no_children_and_is_inherited(make: Make) -> None:
    assert nbmp.current_process().daemon is False
    assert make(daemon=True).daemon is True
    process = make()
    process.daemon = True
    assert process.daemon is True
    answers = nbmp.SimpleQueue()
    process = make(target=functions.have_children, args=(answers,), daemon=True)
    process.start()
    assert answers.get() == "daemonic processes are not allowed to have children"
    with pytest.raises(AssertionError, match="process has already started"):
        process.daemon = False
    process.join()


def test_target_and_arguments_are_let_go_once_started(make: Make) -> None:
    class Held:
        def __call__(self) -> None:
            pass

    held = Held()
    process = make(target=held)
    watched = weakref.ref(held)
    del held
    process.start()
    process.join()
    gc.collect()
    assert watched() is None


def test_many_processes_at_once(make: Make, method: str) -> None:
    count = 4 if method == "spawn" else 12
    processes = [make(target=functions.wait_long) for _ in range(count)]
    for process in processes:
        process.start()
    assert set(processes) <= set(nbmp.active_children())
    for process in processes:
        process.terminate()
    for process in processes:
        process.join(PATIENCE)
    assert {process.exitcode for process in processes} == {-signal.SIGTERM}


def test_process_waits_for_its_threads_and_runs_its_exit_handlers(make: Make, tmp_path: Path) -> None:
    go = nbmp.Event()
    process = make(target=functions.tell_from_thread, args=(str(tmp_path / "thread"), go))
    process.start()
    go.set()
    process.join(PATIENCE)
    assert (tmp_path / "thread").read_text() == "the thread ended"
    assert ended(make(target=functions.tell_at_exit, args=(str(tmp_path / "exit"),))) == 0
    assert (tmp_path / "exit").read_text() == "exit handlers ran"


def test_authkey_of_a_process_can_be_set(make: Make) -> None:
    answers = nbmp.SimpleQueue()
    process = make(target=functions.describe, args=(answers,))
    process.authkey = b"another key"
    process.start()
    assert answers.get()["authkey"] == b"another key"
    process.join()


def test_shared_array_in_the_arguments_is_the_same_memory(make: Make) -> None:
    array = nbmp.zeros(5)
    private = np.zeros(5)
    for given in (array, private):
        assert ended(make(target=functions.set_item, args=(given, 2, 7.0))) == 0
    assert (array[2], private[2]) == (7, 0)


def test_local_function_and_lambda_travel(make: Make) -> None:
    there = nbmp.SimpleQueue()
    process = make(target=lambda: there.put("from a lambda"))
    process.start()
    assert there.get() == "from a lambda"
    process.join()


def test_what_cannot_travel_is_named_and_the_process_can_be_given_up(method: str) -> None:
    if method == "fork":
        pytest.skip("a fork inherits everything")
    process = nbmp.get_context(method).Process(target=functions.nothing, args=(threading.Lock(),))
    with pytest.raises(nbmp.CannotTravelError, match=r"^args\[0\] cannot travel"):
        process.start()
    assert process.pid is None


def test_random_numbers_differ_between_processes(make: Make) -> None:
    def draw() -> None:
        import random

        there.put((random.random(), np.random.rand()))

    there = nbmp.SimpleQueue()
    for _ in range(2):
        ended(make(target=draw))
    (one, two), (three, four) = there.get(), there.get()
    assert one != three
    assert two != four


def test_process_killed_takes_along_what_it_started(make: Make, tmp_path: Path) -> None:
    process = make(target=functions.pid_of_sleeping_child, args=(str(tmp_path / "pid"),))
    process.start()
    pid = int(content(tmp_path / "pid"))
    process.kill()
    process.join()
    assert until(lambda: not is_running(pid))
