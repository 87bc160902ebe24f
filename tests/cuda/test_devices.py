"""Arrays stay on their device, whatever its number is in another process; those that cannot be seen are refused."""

from __future__ import annotations

import nbmp
from nbmp.cuda.devices import shown
from tests.cuda import functions, standin
from tests.cuda.asking import Rank
from tests.cuda.machine import array, values

SECOND, THIRD = 1, 2


def test_number_of_a_device_is_that_of_the_receiver(machine: standin.StandIn) -> None:
    rank = Rank(functions.show, "spawn", env={"CUDA_VISIBLE_DEVICES": "2,0"})
    ((seen, *_, device),) = rank.ask(array([1, 2], THIRD))
    assert (seen, device) == ([1, 2], 0)
    ((seen, *_, device),) = rank.ask(array([3], 0))
    assert (seen, device) == ([3], 1)
    rank.end()


def test_five_small_arrays_on_alternating_devices_in_one_message(machine: standin.StandIn) -> None:
    rank = Rank(functions.show)
    sent = [array([number] * 3, number % 2) for number in range(5)]
    assert [(one[0], one[-1]) for one in rank.ask(sent)] == [([n] * 3, n % 2) for n in range(5)]
    rank.end()


def test_empty_array_keeps_its_device(machine: standin.StandIn) -> None:
    rank = Rank(functions.show)
    assert rank.ask(array([], SECOND))[0][-1] == SECOND
    rank.end()


def test_device_that_the_receiver_cannot_see_is_refused_with_its_name(machine: standin.StandIn) -> None:
    rank = Rank(functions.show_or_error, "spawn", env={"CUDA_VISIBLE_DEVICES": "0"})
    refused = rank.ask(array([1], SECOND))
    assert shown(standin.GPUS[SECOND]) in refused
    assert "cannot see" in refused
    assert "CUDA_VISIBLE_DEVICES=0" in refused
    assert rank.ask(array([2], 0)) == [2]  # the next item can be got
    rank.end()


def test_device_that_may_not_be_accessed_is_refused_with_the_way_out(machine: standin.StandIn) -> None:
    rank = Rank(functions.show_or_error)
    machine.deny(standin.GPUS[SECOND])
    refused = rank.ask(array([1], SECOND))
    assert "may not access that GPU" in refused
    assert "cupy.asnumpy" in refused
    assert rank.ask(array([2], 0)) == [2]
    rank.end()


def test_results_of_ranks_come_to_the_same_device(machine: standin.StandIn) -> None:
    (found,) = nbmp.launch(functions.make_on, (SECOND,), 1, start_method="forkserver")
    assert found.data.device_id == SECOND
    assert values(found) == [1, 2, 3]
