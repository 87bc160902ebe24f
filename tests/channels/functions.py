"""What the other end does. In a module of its own, so that every start method finds it by name."""

import os
import signal
import sys
from typing import Any


def echo(rank: int, requests: Any, answers: Any) -> None:
    """Send everything back until None comes."""
    while (received := requests.get()) is not None:
        answers.put(received)


def fill_first(rank: int, requests: Any, answers: Any) -> None:
    """Take a pair of overlapping views, write through one, tell what the other shows, and send the first one back."""
    first, second = requests.get()
    first[0, 0] = 5
    answers.put((float(second[0, 0]), first.strides))
    answers.put(first)


def produce(rank: int, queue: Any, items: list[Any]) -> None:
    """Put all items and end."""
    for item in items:
        queue.put(item)


def hop(rank: int, source: Any, target: Any) -> None:
    """Pass one array on, one higher."""
    target.put(source.get(timeout=20) + 1)


def wait_in_get(rank: int, queue: Any, ready: Any) -> None:
    """Say so, then wait for something that does not come."""
    ready.put(os.getpid())
    queue.get()


def finish_tasks(rank: int, queue: Any, count: int) -> None:
    """Take so many tasks and say that each is done."""
    for _ in range(count):
        queue.get()
        queue.task_done()


def take_for_ever(rank: int, queue: Any, taken: Any) -> None:
    """Take numbers and tell which, until killed."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    while True:
        taken.put((os.getpid(), queue.get()))


def answer_connection(rank: int, connection: Any) -> None:
    """Send twice what comes until None comes."""
    while (received := connection.recv()) is not None:
        connection.send(received * 2)


def pass_queue_on(rank: int, queue_of_queues: Any) -> None:
    """Take a queue out of a queue and put something into it."""
    queue_of_queues.get().put("through both")


def count_mappings(rank: int, requests: Any, answers: Any) -> None:
    """Take arrays and drop them until None comes; tell how many memory mappings were made for them."""
    made: list[str] = []
    sys.addaudithook(lambda event, _: made.append(event) if event == "mmap.__new__" else None)
    while (received := requests.get()) is not None:
        del received
    answers.put(len(made))
