"""Snapshots as text, and the words for their numbers. No ranks here."""

from __future__ import annotations

from dataclasses import replace

from nbmp.launching.bars.progress import Progress
from nbmp.launching.where.watching import Wait
from nbmp.monitoring import LaunchSnapshot, RankSnapshot, text_table
from nbmp.monitoring.snapshots import GROUPS
from nbmp.reports import Frame

RUNNING = RankSnapshot(
    0, 100, "running", 12.3, 98.0, 41_000_000, "loss 0.2", "", Progress(34, 100, "34/100 [00:10<00:20]"), 256_000_000
)
WAIT = Wait(1, "a barrier", Frame("Cell In[7]", 9, "step"), 3.4)
WAITING = RankSnapshot(1, 101, "running", 12.3, 0.0, 40_000_000, "loss 0.3", "", wait=WAIT)
FAILED = RankSnapshot(2, 102, "raised", 8.21, None, None, "x", "ValueError: shapes do not match")


def table(*ranks: RankSnapshot) -> list[str]:
    return text_table(LaunchSnapshot(ranks, "fork", "", 12.3)).splitlines()


def test_columns_are_below_each_other_and_numbers_end_at_the_same_place() -> None:
    assert table(RUNNING, WAITING, FAILED) == [
        "3 ranks (fork) 00:12: 1 running, 1 waiting, 1 failed",
        "rank  state        progress   time   CPU  memory  shared  last line",
        "   0  running        34/100   12 s  98 %   41 MB  256 MB  loss 0.2",
        "   1  waiting 3 s             12 s   0 %   40 MB       \N{EN DASH}  "
        "Cell In[7], line 9, in step: waits for a barrier",
        "   2  ValueError             8.2 s     \N{EN DASH}       \N{EN DASH}       \N{EN DASH}  shapes do not match",
    ]


def test_columns_without_anything_to_show_are_left_out() -> None:
    assert table(FAILED)[1].split() == ["rank", "state", "time", "last", "line"]


def test_a_rank_that_was_asked_to_end_is_stopping() -> None:
    stopping = RankSnapshot(0, 1, "running", 1.0, None, None, "", "", stopping=True, wait=WAIT)
    assert stopping.label == "stopping"
    assert stopping.group in GROUPS


def test_of_a_warning_the_message_is_the_last_line_and_not_the_source_below_it() -> None:
    source = "  np.array([1.]) / 0"
    tail = ("loss 1", "/tmp/cell.py:2: RuntimeWarning: divide by zero", source)
    rank = RankSnapshot(0, 1, "running", 1.0, None, None, source, "", lines=3, tail=tail)
    assert rank.remark == "RuntimeWarning: divide by zero"
    assert replace(rank, tail=("loss 1", source)).remark == source


def test_time_of_a_launch_is_not_below_that_of_its_ranks() -> None:
    done = replace(FAILED, seconds=0.97)
    head, _, row = text_table(LaunchSnapshot((done,), "fork", "", 0.97)).splitlines()
    assert " 00:01: " in head
    assert " 1.0 s " in row
