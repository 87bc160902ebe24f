"""What is told of ranks that failed, without a launch."""

from __future__ import annotations

import pytest

from nbmp.errors import ProcessRaisedException
from nbmp.reports import ExceptionReport, Frame, RankFailure, ranks_called, render


@pytest.mark.parametrize(
    ("ranks", "called"),
    [
        ([1], "rank 1"),
        ([3, 1], "ranks 1 and 3"),
        ([0, 1, 2], "ranks 0, 1 and 2"),
        ([0, 1, 2, 3], "ranks 0 to 3"),
        ([*range(17), *range(18, 32)], "ranks 0 to 16 and 18 to 31"),
        ([0, 2, 4, 5, 6, 7, 9], "ranks 0, 2, 4 to 7 and 9"),
    ],
)
def test_ranks_are_called_as_people_write_them(ranks: list[int], called: str) -> None:
    assert ranks_called(ranks) == called


def failure(rank: int, *notes: str, place: str = "Cell In[1]") -> RankFailure:
    frames = (Frame(place, 3, "<module>"),) if place else ()
    return RankFailure(rank, 7, 0.0, "running its function", 1, None, ExceptionReport("E", "x", frames, None, notes))


def told(*failures: RankFailure) -> list[str]:
    error = ProcessRaisedException("", 0, 7)
    error.failures = failures
    return render("Error", error, colour=False)


def test_ranks_that_failed_of_the_same_thing_share_a_line() -> None:
    lines = told(*map(failure, range(6)), failure(6, place="Cell In[2]"))
    assert lines[-2:] == ["  ranks 1 to 5  E: x  (Cell In[1], line 3)", "  rank 6  E: x  (Cell In[2], line 3)"]


def test_a_note_without_a_place_stands_where_the_place_would() -> None:
    assert told(failure(0, "one", "two", place=""))[-2:] == ["rank 0  one", "        two"]
    assert told(failure(0, "one"))[-1] == "        one"
