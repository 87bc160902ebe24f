"""How much of a flood is shown, and what stands in for the rest: without a kernel."""

from __future__ import annotations

import pytest

from nbmp.launching.frontends import Chunk, tagged
from nbmp.notebook.output.overflow import LINE, LINES, SURE_LINES, Allowance, Overflow


def lines(rank: int, first: int, count: int, width: int = 1) -> Chunk:
    return Chunk(rank, "stdout", "".join(f"{number:0{width}}\n" for number in range(first, first + count)))


def shown(allowance: Allowance, chunks: list[Chunk]) -> tuple[str, str]:
    """Return what was allowed and what was not."""
    parts = [allowance.split(chunk) for chunk in chunks]
    allowed, further = zip(*parts, strict=True)
    return "".join(c.text for c in allowed if c), "".join(c.text for c in further if c)


def test_all_lines_are_shown_until_the_allowance_is_spent_and_none_after() -> None:
    allowance = Allowance()
    chunks = [lines(0, start, 300) for start in range(0, 9000, 300)]
    allowed, further = shown(allowance, [*chunks, lines(1, 0, 1)])
    assert allowed == "".join(f"{number}\n" for number in range(LINES))
    assert further == "".join(f"{number}\n" for number in range(LINES, 9000)) + "0\n"


@pytest.mark.parametrize("width", [10, LINE, 1000])
def test_4000_lines_are_shown_however_long_they_are(width: int) -> None:
    _, further = shown(Allowance(), [lines(0, start, 100, width) for start in range(0, 4000, 100)])
    assert further == ""


def test_long_lines_use_the_allowance_up_faster() -> None:
    allowed, further = shown(Allowance(), [lines(0, start, 100, 4 * LINE) for start in range(0, 6000, 100)])
    assert allowed.count("\n") == SURE_LINES
    assert further.count("\n") == 2000


def test_line_of_megabytes_is_held_back_whole() -> None:
    allowed, further = shown(Allowance(), [lines(0, 0, 2), Chunk(0, "stdout", "x" * 20_000_000 + "\n"), lines(0, 2, 2)])
    assert allowed == "0\n1\n"
    assert further == "x" * 20_000_000 + "\n2\n3\n"


def test_count_and_the_last_lines_stand_in_for_the_rest() -> None:
    overflow = Overflow(tagged)
    overflow.add(lines(0, 0, 1000))
    overflow.add(lines(0, 1000, 500))
    assert overflow.text(7).split("\n") == [
        "\N{HORIZONTAL ELLIPSIS} 1,480 lines of rank 0 held back: nbmp.output(0, launch=7)",
        *(f"[0] {number}" for number in range(1480, 1500)),
    ]


def test_last_lines_of_a_rank_that_has_ended_stay() -> None:
    overflow = Overflow(tagged)
    overflow.add(lines(1, 0, 100))
    overflow.end(1)
    overflow.add(lines(0, 0, 100))
    overflow.end(0)
    overflow.end(2)  # has written nothing
    assert overflow.text(0).split("\n") == [
        "\N{HORIZONTAL ELLIPSIS} 177 lines of 2 ranks held back",
        *(f"[1] {number}" for number in range(97, 100)),
        "\N{VERTICAL ELLIPSIS}",
        *(f"[0] {number}" for number in range(80, 100)),
    ]


def test_few_lines_are_all_there_and_a_long_one_is_cut() -> None:
    overflow = Overflow(tagged)
    overflow.add(Chunk(3, "stderr", "a\n\n" + "x" * 5000 + "\n"))
    head, *rest = overflow.text(1).split("\n")
    assert head.startswith("\N{HORIZONTAL ELLIPSIS} 0 lines of rank 3")
    assert rest == ["[3] a", "[3] ", "[3] " + "x" * 2000 + "\N{HORIZONTAL ELLIPSIS}"]
