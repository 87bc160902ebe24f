"""The errors themselves: they survive pickling and copying with all they carry."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest

import nbmp
from tests.launching.functions import leave
from tests.launching.test_exceptions import fail_in_rank_1

TRIPS: dict[str, Callable[[Any], Any]] = {
    "pickle": lambda error: pickle.loads(pickle.dumps(error)),
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
}

ERRORS = [
    nbmp.ProcessException("m", 1, 2),
    nbmp.ProcessRaisedException("m", 1, 2),
    nbmp.ProcessExitedException("m", 1, 2, -9, "SIGKILL"),
    nbmp.ProcessExitedException("m", 1, 2, 3),
    nbmp.CannotTravelError("m", "args[0]"),
    nbmp.SharedMemoryError("m"),
    nbmp.LaunchTimeoutError("m"),
    nbmp.StartError("m"),
    nbmp.StdinError("m"),
    nbmp.UnsupportedPlatformError("m"),
]


@pytest.mark.parametrize("trip", TRIPS.values(), ids=TRIPS)
@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_error_survives_a_trip_with_all_fields(error: Exception, trip: Callable[[Any], Any]) -> None:
    same = trip(error)
    assert type(same) is type(error)
    assert str(same) == str(error)
    assert vars(same) == vars(error)


@pytest.mark.parametrize("trip", TRIPS.values(), ids=TRIPS)
def test_error_of_a_launch_survives_a_trip_with_its_failures(trip: Callable[[Any], Any]) -> None:
    with pytest.raises(nbmp.ProcessRaisedException) as raised:
        nbmp.launch(fail_in_rank_1, (), 2, start_method="fork")
    same = trip(raised.value)
    assert same.failures == raised.value.failures
    assert same.failures[0].report.frames
    assert (same.msg, same.error_index, same.error_pid, same.world_size) == (
        raised.value.msg,
        1,
        raised.value.error_pid,
        2,
    )


@pytest.mark.parametrize("trip", TRIPS.values(), ids=TRIPS)
def test_exit_of_a_launch_survives_a_trip_with_code_and_signal(trip: Callable[[Any], Any]) -> None:
    with pytest.raises(nbmp.ProcessExitedException) as raised:
        nbmp.launch(leave, (3,), start_method="fork")
    same = trip(raised.value)
    assert (same.exit_code, same.signal_name, same.failures) == (3, None, raised.value.failures)


@pytest.mark.parametrize(
    ("error", "base"),
    [
        (nbmp.ProcessRaisedException, nbmp.ProcessException),
        (nbmp.ProcessExitedException, nbmp.ProcessException),
        (nbmp.CannotTravelError, TypeError),
        (nbmp.CannotTravelError, pickle.PicklingError),
        (nbmp.SharedMemoryError, MemoryError),
        (nbmp.LaunchTimeoutError, nbmp.TimeoutError),
    ],
)
def test_error_is_caught_by_the_name_that_people_know(error: type[Exception], base: type[Exception]) -> None:
    assert issubclass(error, base)
