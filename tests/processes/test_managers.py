"""A manager's proxies after a call that was interrupted."""

from __future__ import annotations

import os
import queue
import signal
import threading
from typing import Any

import pytest

import nbmp
from nbmp.managers import Resuming
from tests.waiting import PATIENCE


class Interrupted(Exception):
    """What a signal handler of the user's raises."""


def interrupted(call: Any, *arguments: Any) -> bool:
    """Return whether a signal that comes a moment after its begin has ended this call."""

    def stop(*_: object) -> None:
        raise Interrupted

    before = signal.signal(signal.SIGALRM, stop)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        call(*arguments)
    except Interrupted:
        return True
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    return False


def use_after_interrupts(rank: int, items: Any, names: Any) -> Any:
    found = [interrupted(items.get) and items.qsize() for _ in range(3)]
    names.append("there")
    items.put("first")
    return found, names[:], items.get(), items.qsize()


def test_calls_after_an_interrupted_one_get_their_own_answers_and_no_item_is_lost(method: str) -> None:
    with nbmp.Manager() as manager:
        arguments = manager.Queue(), manager.list()
        answers = [0, 0, 0], ["there"], "first", 0
        assert nbmp.launch(use_after_interrupts, arguments, 1, start_method=method) == [answers]
        arguments[1][:] = []
        assert use_after_interrupts(0, *arguments) == answers


def in_time(call: Any) -> bool:
    """Return whether this call comes to an end, in another thread."""
    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    thread.join(PATIENCE)
    return not thread.is_alive()


@pytest.mark.parametrize("kind", ["Lock", "RLock", "Condition", "Semaphore"])
def test_a_lock_is_given_back_whichever_call_in_its_block_was_interrupted(kind: str) -> None:
    with nbmp.Manager() as manager:
        lock, items = getattr(manager, kind)(), manager.Queue()

        def take() -> None:
            with lock:
                pass

        def wait_in_it() -> None:
            with lock:
                lock.wait() if kind == "Condition" else items.get()

        def notify() -> None:
            with lock:
                lock.notify_all()

        assert interrupted(wait_in_it)
        assert in_time(take)
        if kind == "Condition":
            assert in_time(notify)  # the interrupted call comes to its end
            assert in_time(take)
            assert interrupted(wait_in_it)
            over = threading.Event()

            def notify_on() -> None:
                while not over.wait(0.05):
                    notify()

            notifier = threading.Thread(target=notify_on)
            notifier.start()
            wait_in_it()
            over.set()
            notifier.join()


@pytest.mark.parametrize("kind", ["Lock", "RLock", "Condition", "Semaphore"])
def test_an_interrupted_acquire_keeps_nothing(kind: str) -> None:
    with nbmp.Manager() as manager:
        lock = getattr(manager, kind)()
        taken, go_on = threading.Event(), threading.Event()

        def hold() -> None:
            with lock:
                taken.set()
                go_on.wait()

        def take() -> None:
            with lock:
                pass

        thread = threading.Thread(target=hold)
        thread.start()
        taken.wait()
        assert interrupted(take)
        go_on.set()
        thread.join()
        assert in_time(take)
        take()


def test_an_interrupt_with_half_an_answer_received_costs_the_connection() -> None:
    with nbmp.Manager() as manager:
        items: Any = manager.list(["x"])
        assert items[0] == "x"
        line = items._tls.connection
        line._connection = Cut(line._connection)
        with pytest.raises(Interrupted):
            items[0]
        assert items[0] == "x"


class Cut:
    """A connection whose receiver is interrupted in the middle of a message."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def recv_bytes(self) -> bytes:
        os.read(self._connection.fileno(), 5)
        raise Interrupted

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)


def test_an_answer_that_is_an_error_costs_no_connection() -> None:
    with nbmp.Manager() as manager:
        items: Any = manager.Queue()
        items.qsize()
        connection = items._tls.connection
        with pytest.raises(queue.Empty):
            items.get_nowait()
        items.qsize()
        assert items._tls.connection is connection


def test_all_kinds_of_a_manager_are_resumed_and_are_the_standard_librarys() -> None:
    with nbmp.Manager() as manager:
        made = [
            manager.Event(),
            manager.Lock(),
            manager.RLock(),
            manager.Semaphore(),
            manager.BoundedSemaphore(),
            manager.Condition(),
            manager.Barrier(2),
            manager.Queue(),
            manager.JoinableQueue(),
            manager.Value("i", 3),
            manager.Array("i", [1]),
            manager.list(),
            manager.dict(a=1),
            manager.Namespace(),
            *([manager.set()] if hasattr(manager, "set") else []),
        ]
        assert all(isinstance(proxy, Resuming) for proxy in made)
        with manager.Pool(1) as pool:
            assert type(pool).__module__ == "nbmp.managers"
            assert list(pool.imap(abs, [-1, 2])) == [1, 2]
        with made[1], made[5]:
            made[-1].x = made[9].value
        made[11].append(made[12])
        assert made[11][0]["a"] == 1
        made[12].update(b=2)
        assert dict(made[12]) == {"a": 1, "b": 2}
