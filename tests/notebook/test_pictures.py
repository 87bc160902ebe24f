"""The HTML of ranks and its parts. No kernel here."""

from __future__ import annotations

import re
import time
from dataclasses import replace
from html import escape
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("IPython")

from nbmp.launching.bars.progress import Progress
from nbmp.launching.where.stacks import RankStack, ThreadStack
from nbmp.monitoring import LaunchSnapshot, RankSnapshot
from nbmp.notebook.live import ansi
from nbmp.notebook.ranks.actions import DOUBLE_CLICK, GRACE, Actions
from nbmp.notebook.ranks.render import Extras, html_table, live_rows, live_style
from nbmp.notebook.ranks.selecting import selected
from nbmp.notebook.ranks.stackview import error_html, ranges, stacks_html
from nbmp.reports import ExceptionReport, Frame, RankFailure
from tests.waiting import until

FRAME = Frame("Cell In[7]", 9, "step", ((8, "a = 1"), (9, "b = a < 2")))
FAILURE = RankFailure(3, 7, 0.0, "running its function", report=ExceptionReport("ValueError", "a <b>", (FRAME,)))


def rank(number: int, state: str = "running", *lines: str, failure: str = "") -> RankSnapshot:
    said = lines[-1] if lines else ""
    error = FAILURE if failure else None
    return RankSnapshot(
        number, 100 + number, state, 3.0, 1.0, 1 << 20, said, failure, lines=50, tail=lines, error=error
    )


def launch(*ranks: RankSnapshot) -> LaunchSnapshot:
    return LaunchSnapshot(ranks, "fork", "", 3.0)


def words(html: str) -> str:
    return " ".join(re.sub("<[^>]*>", " ", re.sub("<style>.*?</style>", "", html, flags=re.S)).split())


def test_colours_of_a_terminal_become_classes_and_all_else_is_escaped() -> None:
    assert ansi.html("\x1b[1;31m<red>\x1b[0m & \x1b[38;5;9mx\x1b[2K\x1b]0;title\x07y") == (
        '<span class="ansi-bold ansi-red">&lt;red&gt;</span> &amp; xy'
    )
    assert ansi.html("no\x00\x08thing") == "nothing"
    assert ansi.plain("\x1b[92mok\x1b[m\r") == "ok"


def test_a_saved_table_folds_what_ranks_wrote_and_needs_no_style() -> None:
    html = html_table(launch(rank(0, "done", "a", "<b>"), rank(1)), Extras(told_by="nbmp.output(RANK)"))
    assert html.count("<details>") == 2
    assert "<pre>a\n&lt;b&gt;</pre>" in html
    assert "rank 0: 50 lines" in words(html)
    assert "pid 100, 50 lines, all of them: nbmp.output(0)" in words(html)
    assert "<input" not in html


def test_the_error_of_a_failed_rank_is_open_with_cell_and_line() -> None:
    html = html_table(launch(rank(3, "raised", failure="ValueError: a <b>")))
    assert "<details open>" in html
    assert "Cell In[7], line 9, in step" in words(html)
    assert "a &lt;b&gt;" in html
    assert "b = a &lt; 2" in error_html(FAILURE)


def test_of_ranks_that_failed_of_the_same_thing_the_first_by_time_is_open() -> None:
    later = FAILURE._replace(rank=0, pid=8, when=2.0)
    first, other = (later._replace(rank=n, when=1.0, exit_code=code) for n, code in ((1, None), (2, 3)))
    snapshot = launch(*(replace(rank(n, "raised"), error=error) for n, error in enumerate((later, first, other))))
    parts = html_table(snapshot).split("<summary>")
    assert [part.rpartition("<details")[2] for part in parts[:3]] == [">", " open>", " open>"]
    assert all("Cell In[7], line 9" in words(part) for part in parts[1:])
    zeroth, *others = live_rows(snapshot, "key").split('<tr class="fold')[1:]
    assert '<div class="tail"><pre class="err">' in zeroth
    assert all('<div class="tail"><pre class="err">' not in row and '<pre class="err">' in row for row in others)


def test_the_state_of_a_rank_that_raised_is_the_name_of_the_class() -> None:
    failure = "numpy.linalg.LinAlgError: Singular matrix: 1.5"
    assert ">LinAlgError</span>" in html_table(launch(rank(0, "raised", failure=failure)))


def test_what_is_clicked_lies_in_the_part_that_is_never_replaced() -> None:
    few, many = (launch(*(rank(n) for n in range(count))) for count in (4, 64))
    for snapshot in (few, many):
        assert "<label" not in live_rows(snapshot, "key")
        assert live_style("key", snapshot).count("<label") == len(snapshot.ranks) + (6 if snapshot is many else 0)


def test_of_many_ranks_those_that_failed_have_rows_and_come_first_when_saved() -> None:
    snapshot = launch(*(rank(n) for n in range(63)), rank(63, "raised", failure="ValueError: x"))
    shown = re.findall(r'<tr class="rank k(\d+) is-\w+ shown"', live_rows(snapshot, "key"))
    assert shown == ["63"]
    assert re.findall(r"<summary>rank (\d+):", html_table(snapshot))[:2] == ["63", "0"]
    first, others = html_table(snapshot).split('<details class="all">')
    assert (first.count('<tr class="fold">'), others.count('<tr class="fold">')) == (1, 63)
    assert "all, one by one" in html_table(launch(*(rank(n, "done") for n in range(64))))


def test_bars_have_their_names_beside_them_and_their_pace_in_the_tooltip() -> None:
    text = "epoch: 1/3 [00:10<00:20, 3.40it/s] · batch: a: 4/9 [00:01<00:02, 1.2it/s]"
    html = html_table(launch(replace(rank(0), progress=Progress(1, 3, text))))
    assert '<span class="called wide">epoch · batch: a</span>' in html
    assert f'title="{escape(text)}"' in html
    assert "called wide" not in html_table(launch(replace(rank(0), progress=Progress(1, 3, "1/3 [00:10<?, ?it/s]"))))
    assert ">down<" in html_table(launch(replace(rank(0), progress=Progress(5, None, "down: 5.1kit [00:10, 1it/s]"))))


def test_how_ranks_were_started_heads_the_table_and_why_only_if_it_is_not_the_usual_way() -> None:
    for method, told in (("fork", "fork"), ("spawn", "spawn · the reason")):
        html = html_table(LaunchSnapshot((rank(0),), method, "the reason", 3.0))
        assert f">{told}</span>" in html
        assert "· the reason" in html


@pytest.mark.parametrize(
    ("text", "found"),
    [("", None), ("3", {3}), ("1, 8-10", {1, 8, 9, 10}), ("FAILED", {5}), ("loss 2", {2}), ("nothing", set())],
)
def test_ranks_are_chosen_by_numbers_or_a_word(text: str, found: set[int] | None) -> None:
    ranks = [rank(n, "running", f"loss {n}.0") for n in range(12)]
    ranks[5] = rank(5, "raised", failure="ValueError: x")
    assert selected(text, launch(*ranks)) == (None if found is None else frozenset(found))


class Deaf:
    """A pool whose worker does not end."""

    kind = "pool"

    def __init__(self) -> None:
        self.worker: Any = SimpleNamespace(shown_as=0, rank=0, ended=False, failure=None, stopping=False)
        self.ranks = [self.worker]
        self.asked: list[float] = []

    def halt(self, grace: float, ranks: object = None) -> str:
        self.asked.append(grace)
        self.worker.stopping = True
        return ""


def test_a_double_click_stops_and_a_later_one_kills() -> None:
    pool: Any = Deaf()
    actions = Actions(pool)
    actions.stop()
    assert until(lambda: pool.worker.stopping)
    actions.stop()
    assert pool.asked == [GRACE]
    time.sleep(DOUBLE_CLICK)
    actions.stop()
    assert pool.asked == [GRACE, 0.0]


def test_numbers_in_a_row_are_told_as_a_range() -> None:
    assert ranges([5, 0, 1, 2, 9]) == "0\N{EN DASH}2, 5, 9"


def test_ranks_at_the_same_place_are_told_together() -> None:
    def at(number: int, frame: Frame) -> RankStack:
        main = ThreadStack("MainThread", number, (frame,), None, (frame,), "a barrier")
        return RankStack(number, number, "running", 3.0, (main,))

    other = Frame("Cell In[8]", 2, "load")
    text = words(stacks_html([at(0, FRAME), at(1, other), at(2, FRAME)], "00:03"))
    assert text.startswith("at 00:03: ranks 0, 2 wait for a barrier")
    assert text.count("Cell In[7], line 9") == 1
    assert "rank 1 (pid 1)" in text
