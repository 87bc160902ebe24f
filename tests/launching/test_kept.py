"""What is kept of a rank's output: all of it, or its beginning and its end in bounded memory."""

from __future__ import annotations

import random
import sys
import time

import pytest

from nbmp.launching.written.kept import KeptOutput
from tests.launching import functions


def both_streams(rank: int) -> None:
    for number in range(3):
        print(f"out {number}", flush=True)
        time.sleep(0.02)
        print(f"err {number}", file=sys.stderr, flush=True)
        time.sleep(0.02)
    print("no end", end="")


def test_output_of_a_rank_can_be_read_in_the_order_of_its_lines(method: str, capfd: pytest.CaptureFixture[str]) -> None:
    context = functions.begin(both_streams, (), 2, method)
    assert context.join()
    lines = context.output(1).splitlines()
    # the order between the two streams is that in which they were read: on a busy machine several lines at a time
    assert [line for line in lines if "err" not in line] == ["out 0", "out 1", "out 2", "no end"]
    assert [line for line in lines if "err" in line] == ["err 0", "err 1", "err 2"]
    kept = context.ranks[1].output
    assert kept.lines == 7
    assert kept.tail(2) == lines[-2:]
    with pytest.raises(IndexError, match="no rank 2"):
        context.output(2)


def test_of_a_flood_the_beginning_and_the_end_are_kept() -> None:
    kept = KeptOutput(1 << 20)
    rng = random.Random(1)
    count = 0
    while count < 300_000:
        lines = rng.choice((1, 2, 900))
        kept.add("".join(f"line {count + index}\n" for index in range(lines)))
        count += lines
    assert kept.lines == count
    text = kept.text()
    assert len(text) < 1 << 20
    before, _, rest = text.partition("\N{HORIZONTAL ELLIPSIS} ")
    missing, _, after = rest.partition(" lines left out \N{HORIZONTAL ELLIPSIS}\n")
    first, last = before.splitlines(), after.splitlines()
    assert first == [f"line {number}" for number in range(len(first))]
    assert last == [f"line {number}" for number in range(count - len(last), count)]
    assert int(missing.replace(",", "")) == count - len(first) - len(last)
    assert kept.tail(5000) == [f"line {number}" for number in range(count - 5000, count)]


@pytest.mark.parametrize("count", [0, 1, 3, 99])
def test_last_lines_are_as_many_as_there_are_at_most(count: int) -> None:
    kept = KeptOutput()
    kept.add("one\ntwo\n")
    kept.add("\n")
    kept.add("four\n")
    assert kept.tail(count) == ["one", "two", "", "four"][max(0, 4 - count) :]
    assert kept.text() == "one\ntwo\n\nfour\n"


def test_line_that_is_longer_than_all_that_may_be_kept_is_left_out() -> None:
    kept = KeptOutput(1 << 16)
    kept.add("short\n" * 4)
    kept.add("long" * 100_000 + "\n")
    kept.add("short\n" * 2)
    assert kept.lines == 7
    assert (
        kept.text()
        == "short\n" * 4 + "\N{HORIZONTAL ELLIPSIS} 1 lines left out \N{HORIZONTAL ELLIPSIS}\n" + "short\n" * 2
    )
