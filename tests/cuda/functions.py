"""What ranks do with arrays on a GPU. Imported by them before what they are given is unpickled."""

from __future__ import annotations

import gc
import os
import time
from typing import Any

import nbmp.cuda
from nbmp.cuda import driver, received
from nbmp.cuda.loans import loans
from tests.cuda.machine import array, look, record, side_stream, values, wait_for, write, write_late
from tests.waiting import until


def get_ready() -> None:
    """For pools: have this module loaded before the arrays come."""


def show(rank: int, requests: Any, answers: Any) -> None:
    """Tell values, shape, strides, dtype and device of each array until None comes."""
    while (found := requests.get(timeout=60)) is not None:
        many = found if isinstance(found, list) else [found]
        answers.put([(values(one), one.shape, one.strides, one.dtype.str, one.data.device_id) for one in many])
        del found, many


def show_arguments(rank: int, *arrays: Any) -> list[Any]:
    return [values(one) for one in arrays]


def write_into(rank: int, requests: Any, answers: Any) -> None:
    """Write the rank's answer, 7, into each array until None comes."""
    while (found := requests.get(timeout=60)) is not None:
        write(found, 7)
        del found
        answers.put("written")


def hold(rank: int, requests: Any, answers: Any) -> None:
    """Take one array and keep it for ever."""
    found = requests.get(timeout=60)
    answers.put((os.getpid(), values(found)))
    time.sleep(600)


def hold_until_told(rank: int, requests: Any, answers: Any) -> None:
    """Take one array, keep it until the next message, tell what is in it then, let it go, and say so."""
    found = requests.get(timeout=60)
    answers.put("held")
    requests.get(timeout=60)
    answers.put(values(found))
    del found
    assert until(lambda: gc.collect() or not received.blocks())
    answers.put("dropped")


def pass_on(rank: int, source: Any, target: Any) -> None:
    """Pass arrays on, and drop them, until None comes; that is passed on as well."""
    while (found := source.get(timeout=60)) is not None:
        target.put(found)
        del found
    target.put(None)


def produce(rank: int, queue: Any, count: int) -> None:
    """Put new arrays, drop each at once, and end."""
    for number in range(count):
        queue.put(array([number] * 5))


def produce_and_say(rank: int, queue: Any, said: Any) -> None:
    """Put an array, and say which process this is; end."""
    queue.put(array([1, 2, 3]))
    said.put(os.getpid())


def produce_for_ever(rank: int, queue: Any, said: Any) -> None:
    kept = array([1, 2, 3])
    queue.put(kept)
    said.put(os.getpid())
    time.sleep(600)


def result(rank: int, *_: Any) -> Any:
    """Return an array of this rank's memory, which ends with it."""
    return {"made": array([[rank, 1, 2], [3, 4, 5]]).T, "rank": rank}


def give_back(rank: int, given: Any) -> Any:
    return given


def double(given: Any) -> Any:
    """For pools: return twice the array."""
    return array(2 * look(given))


def make_late(rank: int, answers: Any, go: Any) -> None:
    """Put an array that is written to late, on a stream of its own."""
    made = array([0, 0, 0])
    with side_stream():
        write_late(made, [1, 2, 3])
        answers.put(made)
    go.get(timeout=60)


def double_after(rank: int, requests: Any, answers: Any) -> None:
    """Take array and event; wait for the event on a stream, double the array there, record, and say so."""
    found, event = requests.get(timeout=60)
    with side_stream():
        wait_for(event)
        write_late(found, 2 * look(found), 0.05)
        record(event)
    answers.put("asked for")
    requests.get(timeout=60)


def count_lent(rank: int, requests: Any, answers: Any) -> None:
    """Tell how much this process lends, again and again until None comes."""
    while requests.get(timeout=60) is not None:
        answers.put(loans.sweep())


def keep_first(rank: int, requests: Any, answers: Any) -> None:
    """Take a list of arrays, keep the first until the next message."""
    first = requests.get(timeout=60)[0]
    assert until(lambda: gc.collect() or len(received.blocks()) == 1)
    answers.put("kept")
    requests.get(timeout=60)
    del first


def keep_two(rank: int, requests: Any, answers: Any) -> None:
    """Take two arrays of one block, tell after each how many uses of a block there are."""
    first = requests.get(timeout=60)
    answers.put(len(received.blocks()))
    second = requests.get(timeout=60)
    answers.put(len({id(one.data.mem._owner) for one in (first, second)}))
    requests.get(timeout=60)
    del first, second


def keep_view(rank: int, requests: Any, answers: Any) -> None:
    """Take an array, keep its last row only."""
    view = requests.get(timeout=60)[-1]
    answers.put(values(view))
    requests.get(timeout=60)
    answers.put(values(view))
    requests.get(timeout=60)


def tell_usage(rank: int, requests: Any, answers: Any) -> None:
    """Take an array and tell what is received here by then."""
    found = requests.get(timeout=60)
    answers.put([(block.size, block.producer) for block in nbmp.cuda.memory_usage().received])
    requests.get(timeout=60)
    del found


def hold_a_while(rank: int, requests: Any, answers: Any, seconds: float) -> None:
    """Take an array, say which process this is, and keep it for so long."""
    found = requests.get(timeout=60)
    answers.put(os.getpid())
    time.sleep(seconds)
    del found
    time.sleep(600)


def work_and_drop(rank: int, requests: Any, answers: Any) -> None:
    """Take an array, have it written late, drop it at once."""
    found = requests.get(timeout=60)
    write_late(found, [5, 5], 0.5)
    del found
    answers.put("dropped")
    requests.get(timeout=60)


def work_and_pass_on(rank: int, requests: Any, answers: Any) -> None:
    """Take an array (and how many seconds to take), have it written late, pass it on, and end."""
    found = requests.get(timeout=60)
    found, seconds = found if isinstance(found, tuple) else (found, 0.3)
    write_late(found, [5, 5], seconds)
    answers.put(found)


def look_after(rank: int, event: Any, given: Any) -> list[Any]:
    """Return what is in the array after the event."""
    with side_stream():
        wait_for(event)
        return values(given)


def wait_when_told(rank: int, requests: Any, answers: Any) -> None:
    event, given = requests.get(timeout=60)
    answers.put("opened")
    requests.get(timeout=60)
    wait_for(event)
    answers.put(values(given))
    requests.get(timeout=60)


def show_or_error(rank: int, requests: Any, answers: Any) -> None:
    """Tell the values, or the error of getting the array, until None comes."""
    while True:
        try:
            found = requests.get(timeout=60)
        except nbmp.DeviceError as error:
            answers.put(str(error))
            continue
        if found is None:
            return
        answers.put(values(found))
        del found


def tell_gpu(rank: int) -> tuple[str, int, list[Any]]:
    """Tell which GPU this rank may use, how many CUDA has here, and what was made there."""
    return os.environ["CUDA_VISIBLE_DEVICES"], driver.device_count(), values(array([rank]))


def make_on(rank: int, device: int) -> Any:
    return array([1, 2, 3], device)


def produce_once(rank: int, queue: Any, said: Any) -> None:
    """Put an array, say so, and say when its block is free again."""
    queue.put(array([1, 2, 3]))
    said.put("put")
    assert until(lambda: not loans.sweep(), 60)
    said.put("free")


def take_for_ever(rank: int, requests: Any, answers: Any) -> None:
    """Take arrays and tell what is in them until killed."""
    while True:
        found = requests.get(timeout=60)
        answers.put(values(found[0] if isinstance(found, list) else found)[0])
        del found


def put_for_ever(rank: int, requests: Any, answers: Any) -> None:
    """Put arrays of five equal numbers until killed; sixteen are under way at most."""
    number = 0
    while True:
        if loans.sweep() < 16:
            answers.put(array([number] * 5))
            number += 1
