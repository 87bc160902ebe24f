"""What processes do in the tests."""

from __future__ import annotations

import atexit
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

import nbmp
from tests.waiting import PATIENCE, tell, until


def nothing() -> None:
    pass


def wait_long() -> None:
    time.sleep(PATIENCE * 10)


def ready_and_wait(path: str, *, deaf: bool = False) -> None:
    if deaf:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    tell(path, os.getpid())
    wait_long()


def describe(answers: Any, *args: Any, **kwargs: Any) -> None:
    process = nbmp.current_process()
    answers.put(
        {
            "args": args,
            "kwargs": kwargs,
            "name": process.name,
            "daemon": process.daemon,
            "authkey": bytes(process.authkey),
            "pid": process.pid,
            "getpid": os.getpid(),
            "alive": process.is_alive(),
            "kind": type(process).__name__,
            "children": nbmp.active_children(),
            "rank": os.environ.get("RANK"),
            "method": nbmp.get_start_method(allow_none=True),
        }
    )


def describe_parent(answers: Any) -> None:
    parent = nbmp.parent_process()
    assert parent is not None
    answers.put((parent.pid, parent.name, parent.is_alive(), type(parent).__name__ == "_ParentProcess"))


def leave(code: Any) -> None:
    sys.exit(code)


def leave_hard(code: int) -> None:
    os._exit(code)


def fail(text: str) -> None:
    raise ValueError(text)


def end_by(number: int) -> None:
    os.kill(os.getpid(), number)
    wait_long()


def say(text: str) -> None:
    print(text)


def tell_at_exit(path: str) -> None:
    atexit.register(tell, path, "exit handlers ran")


def tell_from_thread(path: str, go: Any) -> None:
    def late() -> None:
        go.wait(PATIENCE)
        tell(path, "the thread ended")

    threading.Thread(target=late).start()


def names_below(answers: Any, depth: int, method: str) -> None:
    answers.put(nbmp.current_process().name)
    if depth:
        context = nbmp.get_context(method)
        children = [context.Process(target=names_below, args=(answers, depth - 1, method)) for _ in range(2)]
        for child in children:
            child.start()
            child.join()


def have_children(answers: Any) -> None:
    try:
        nbmp.Process(target=nothing).start()
    except AssertionError as error:
        answers.put(str(error))


def add(counter: Any, times: int) -> None:
    for _ in range(times):
        with counter.get_lock():
            counter.value += 1


def add_locked(lock: Any, counter: Any, times: int) -> None:
    for _ in range(times):
        with lock:
            counter.value += 1


def wait_for(event: Any, told: Any) -> None:
    assert event.wait(PATIENCE)
    told.put("heard")


def meet(barrier: Any, told: Any) -> None:
    told.put(barrier.wait(PATIENCE))


def wait_until_notified(condition: Any, waiting: Any, told: Any) -> None:
    with condition:
        waiting.release()
        told.put(condition.wait(PATIENCE))


def try_lock(lock: Any) -> bool:
    return bool(lock.acquire(block=False))


_remembered: Any = None


def remember(lock: Any) -> None:
    global _remembered
    _remembered = lock


def try_remembered(_: object) -> bool:
    return try_lock(_remembered)


def put(there: Any, value: Any) -> None:
    there.put(value)


def send(there: Any, value: Any) -> None:
    there.send(value)
    there.close()


def set_item(there: Any, key: Any, value: Any) -> None:
    there[key] = value


def interrupted(ready: str, path: str) -> None:
    try:
        ready_and_wait(ready)
    except KeyboardInterrupt:
        tell(path, "interrupted")
        raise


def pid_of_sleeping_child(path: str) -> None:
    child = nbmp.Process(target=wait_long)
    child.start()
    tell(path, child.pid)
    child.join()


def seen_at(path: str) -> None:
    assert until(Path(path).exists)
