"""Arrays on a GPU through queues, arguments, results and pools: the same memory arrives, in the same place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import cupy
import numpy as np
import pytest

import nbmp
from nbmp.cuda import received
from tests.cuda import functions, standin
from tests.cuda.asking import Rank
from tests.cuda.machine import array, neighbours, values, write
from tests.waiting import until

METHODS = ("spawn", "forkserver")


def told(one: Any) -> tuple[Any, ...]:
    return values(one), one.shape, one.strides, one.dtype.str, one.data.device_id


VIEWS: dict[str, Callable[[Any], Any]] = {
    "whole": lambda a: a,
    "slice": lambda a: a[1:3],
    "steps": lambda a: a[::2, 1::3],
    "backwards": lambda a: a[::-1, ::-2],
    "transposed": lambda a: a.T,
    "one element": lambda a: a[2, 3],
    "a row": lambda a: a[2],
    "reshaped": lambda a: a.reshape(2, 10),
    "broadcast": lambda a: cupy.broadcast_to(a[0], (3, 5)),
    "new axis": lambda a: a[:, None],
    "empty": lambda a: a[:0],
    "empty in the middle": lambda a: a[2:2, 1:],
}


@pytest.mark.parametrize("method", METHODS)
def test_every_view_arrives_with_its_values_shape_strides_and_device(gpu: str, method: str) -> None:
    rank = Rank(functions.show, method)
    whole = array(np.arange(20, dtype=np.float32).reshape(4, 5))
    for name, view in VIEWS.items():
        sent = view(whole)
        (answer,) = rank.ask(sent)
        if sent.size:
            assert answer == told(sent), name
        else:
            assert (answer[0], answer[1], answer[3:]) == (values(sent), sent.shape, told(sent)[3:]), name
    rank.end()


@pytest.mark.parametrize("kind", ["bool", "i1", "u8", "f2", "f8", "c8", "c16"])
def test_every_dtype_arrives(gpu: str, kind: str) -> None:
    queue = nbmp.Queue()
    sent = array(np.arange(6).astype(kind))
    queue.put(sent)
    assert told(queue.get(timeout=20)) == told(sent)


def test_small_arrays_of_one_allocation_slices_and_empty_ones_arrive_right(gpu: str) -> None:
    rank = Rank(functions.show)
    first, second = neighbours(np.arange(10, dtype="i4"), np.arange(10, 20, dtype="i4"))
    for sent in (first, second, second[3:8:2], first[:0]):
        (answer,) = rank.ask(sent)
        assert (sum(answer[0]), answer[1], answer[4]) == (sum(values(sent)), sent.shape, sent.data.device_id)
    rank.end()


def test_ten_pairs_of_types_from_one_allocation_in_one_message(gpu: str) -> None:
    rank = Rank(functions.show)
    many: list[Any] = []
    for number in range(10):
        many += [np.full(5, number, np.float32), np.full(7, number, np.uint8)]
    sent = neighbours(*many)
    assert [one[0] for one in rank.ask(sent)] == [one.tolist() for one in many]
    rank.end()


def test_more_blocks_than_a_packet_has_room_for_in_one_message(gpu: str) -> None:
    rank = Rank(functions.show)
    assert [one[0] for one in rank.ask([array([number]) for number in range(300)])] == [[n] for n in range(300)]
    rank.end()


def test_both_sides_write_into_the_same_memory(gpu: str) -> None:
    rank = Rank(functions.write_into)
    whole = array(np.zeros((3, 4)))
    assert rank.ask(whole[1:, ::2]) == "written"
    assert values(whole) == [[0] * 4, [7, 0, 7, 0], [7, 0, 7, 0]]
    rank.end()


def test_what_the_sender_writes_later_is_seen(gpu: str) -> None:
    rank = Rank(functions.hold_until_told)
    whole = array([1, 2, 3])
    assert rank.ask(whole) == "held"
    write(whole, [4, 5, 6])
    assert rank.ask("look") == [4, 5, 6]
    assert rank.answers.get(timeout=60) == "dropped"
    rank.end()


def test_get_in_the_same_process_gives_the_same_memory(gpu: str) -> None:
    first, second = neighbours([1, 2, 3], [4, 5, 6])
    queue = nbmp.Queue()
    for sent in (first, second, second[::-1], second[1:], second[:0]):
        queue.put(sent)
        found = queue.get(timeout=20)
        assert values(found) == values(sent)
        assert not sent.size or found.data.mem is sent.data.mem
    assert not received.blocks()


def test_state_of_a_model_goes_around_a_hundred_times(gpu: str) -> None:
    there, back = nbmp.Queue(1), nbmp.Queue(1)
    context = nbmp.start_processes(functions.pass_on, (there, back), 1, join=False, start_method="spawn")
    state = {"weight": array(np.eye(3)), "bias": array([1.0, 2.0])}
    for _ in range(100):
        there.put(state)
        found = back.get(timeout=60)
        assert found["weight"].data.mem is state["weight"].data.mem
        assert values(found["bias"]) == [1, 2]
    there.put(None)
    assert back.get(timeout=60) is None
    assert context is not None
    assert context.join(60)


@pytest.mark.parametrize("method", METHODS)
def test_arguments_of_ranks_are_the_callers_memory(gpu: str, method: str) -> None:
    first, second = neighbours([1, 2], [3, 4])
    answers = nbmp.launch(functions.show_arguments, (first, second, first[1:]), 2, start_method=method)
    assert answers == [[[1, 2], [3, 4], [2]]] * 2


@pytest.mark.parametrize("method", METHODS)
def test_results_of_ranks_are_the_callers_own_copies(gpu: str, method: str) -> None:
    for rank, found in enumerate(nbmp.launch(functions.result, (), 2, start_method=method)):
        assert found["rank"] == rank
        assert values(found["made"]) == [[rank, 3], [1, 4], [2, 5]]
        assert found["made"].flags.f_contiguous
    assert not received.blocks()


def test_result_that_is_the_callers_own_array_comes_back_as_the_same_memory(gpu: str) -> None:
    given = array([1, 2, 3])
    (found,) = nbmp.launch(functions.give_back, (given,), 1, start_method="forkserver")
    assert found.data.mem is given.data.mem


def test_results_of_a_pool_outlive_it(gpu: str) -> None:
    with nbmp.get_context("forkserver").Pool(1, functions.get_ready) as pool:
        found = pool.map(functions.double, [array([1, 2]), array([3, 4])])
        assert until(lambda: not received.blocks())
    assert [values(one) for one in found] == [[2, 4], [6, 8]]


def test_arrays_go_through_a_pipe(gpu: str) -> None:
    ours, theirs = nbmp.Pipe()
    sent = array([1, 2, 3])
    ours.send(sent)
    assert theirs.recv().data.mem is sent.data.mem


def test_an_array_is_shared_always(gpu: str) -> None:
    sent = array([1, 2, 3])
    assert nbmp.is_shared(sent)
    assert nbmp.share_memory(sent) is sent


def test_allocation_is_opened_once_whatever_lies_in_it(machine: standin.StandIn) -> None:
    rank = Rank(functions.show)
    first, second = neighbours([1, 2], [3, 4])
    rank.ask([first, second, first[1:], second[::-1]])
    assert len(machine.noted("opens")) == 1
    rank.end()
