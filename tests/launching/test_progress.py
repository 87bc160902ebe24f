"""How far ranks are: `nbmp.progress` and tqdm, on the rank board."""

from __future__ import annotations

import math
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import nbmp
from nbmp.launching import milestones
from nbmp.launching.bars.progress import Progress, progress_of
from nbmp.launching.bars.slots import COUNTED, TEXT_BYTES, WORDED, Bar
from nbmp.launching.board import Row, board
from tests.launching import functions
from tests.waiting import until

Capture = pytest.CaptureFixture[str]


def count_then_wait(rank: int, path: str, steps: int) -> None:
    with nbmp.progress(total=steps, desc="counting") as bar:
        bar.update(2)
        functions.wait_for(rank, path)
        bar.update(steps - 2)


def test_how_far_a_rank_is_can_be_seen_while_it_runs_and_afterwards(method: str, tmp_path: object) -> None:
    context = functions.begin(count_then_wait, (f"{tmp_path}/go", 10), 2, method)
    assert until(lambda: all(seen is not None and seen.n == 2 for seen in progress(context)))
    seen = progress(context)[1]
    assert seen is not None
    assert (seen.total, seen.text[:17]) == (10, "counting: 2/10 [0")
    open(f"{tmp_path}/go", "w").close()
    assert context.join()
    first = progress(context)
    assert [seen and seen[:2] for seen in first] == [(10, 10), (10, 10)]
    time.sleep(0.05)
    assert progress(context) == first  # time stands still


def progress(context: nbmp.ProcessContext) -> list[Progress | None]:
    return [record.progress for record in context.ranks]


def iterate(rank: int) -> tuple[list[int], list[object]]:
    seen: list[object] = []
    outer = nbmp.progress(range(3), desc="outer")
    steps = [step for step in outer for _ in nbmp.progress(iter("ab"))]
    seen += [outer.n, outer.total, len(outer)]
    return steps, seen


def test_iterating_gives_what_the_iterable_gives(method: str) -> None:
    assert nbmp.launch(iterate, start_method=method) == [([0, 0, 1, 1, 2, 2], [3, 3, 3])]


def be_killed(rank: int) -> None:
    for step in nbmp.progress(range(100)):
        if step == 40:
            os.kill(os.getpid(), 9)


def test_how_far_a_killed_rank_came_stays(method: str) -> None:
    context = functions.begin(be_killed, (), 1, method)
    with pytest.raises(nbmp.ProcessExitedException):
        context.join()
    (seen,) = progress(context)
    assert seen is not None
    assert (seen.n, seen.total) == (40, 100)


def fork_with_a_bar(rank: int) -> None:
    for _ in nbmp.progress(range(2)):
        pid = os.fork()
        if pid == 0:
            for _ in nbmp.progress(range(1000), desc="of the child"):
                pass
            os._exit(0)
        os.waitpid(pid, 0)


def test_bars_of_children_that_a_rank_forks_do_not_show_as_its_own() -> None:
    context = functions.begin(fork_with_a_bar, (), 1, "fork")
    assert context.join()
    (seen,) = progress(context)
    assert seen is not None
    assert (seen.n, seen.total) == (2, 2)
    assert "child" not in seen.text


def test_reader_in_the_middle_of_a_write_sees_one_bar_or_the_other() -> None:
    segment = board(1)
    writer, reader = Row(segment, 0).bars[0], Row(segment, 0)
    bars = [Bar(WORDED, 0, 10.0, "a" * 170, 1.0, 0.0), Bar(WORDED, 0, 20.0, "b" * 30, 2.0, 0.0, 1)]
    counts = writer.counts()
    counts[0], counts[1] = 10, 20
    writer.write(bars[0])
    stop = threading.Event()

    def write() -> None:
        while not stop.is_set():
            for bar in bars:
                writer.write(bar)

    thread = threading.Thread(target=write)
    thread.start()
    try:
        for _ in range(5000):
            seen = progress_of(reader)
            assert seen in ((10, 10, "a" * 170), (20, 20, "b" * 30))
    finally:
        stop.set()
        thread.join()


def test_long_text_is_cut_between_characters() -> None:
    row = Row(board(1), 0)
    row.bars[0].write(Bar(WORDED, 0, None, "日" * 100, 0.0, 0.0))
    seen = progress_of(row)
    assert seen is not None
    assert seen.text == "日" * (TEXT_BYTES // 3)


@pytest.mark.parametrize(
    ("n", "total", "seconds", "text"),
    [
        (0, 100, 1, "x: 0/100 [00:01<?, ?it/s]"),
        (50, 100, 10, "x: 50/100 [00:10<00:10, 5.00it/s]"),
        (1, 4, 4000, "x: 1/4 [1:06:40<3:20:00, 4000.00s/it]"),
        (2.5, None, 1, "x: 2.5 [00:01, 2.50it/s]"),
        (5000, float("inf"), 1, "x: 5000 [00:01, 5,000it/s]"),
        (float("nan"), 10, 1, "x: nan/10 [00:01<?, ?it/s]"),
        (float("inf"), 10, 1, "x: inf/10 [00:01<?, ?it/s]"),
        (float("-inf"), None, 1, "x: -inf [00:01, ?it/s]"),
        (-2, 10, 1, "x: -2/10 [00:01<?, ?it/s]"),
        (1e300, 10, 1, "x: 1e+300/10 [00:01<00:00, 1e+300it/s]"),
        (1e-300, 1e300, 1, "x: 1e-300/1e+300 [00:01<?, 1e+300s/it]"),
    ],
)
def test_counted_bar_is_put_into_words(n: float, total: float | None, seconds: float, text: str) -> None:
    row = Row(board(1), 0)
    row.bars[0].counts()[0] = n
    row.bars[0].write(Bar(COUNTED, 0, total, "x", 100.0, 100.0 + seconds))
    seen = progress_of(row)
    assert seen is not None
    assert seen.text == text
    assert math.isfinite(seen.n)


def count_to_no_number(rank: int) -> None:
    nbmp.progress(total=10, desc=5).update(float("nan"))  # type: ignore[call-overload]


def test_bar_that_counts_to_no_number_is_shown(method: str) -> None:
    context = functions.begin(count_to_no_number, (), 1, method)
    assert context.join()
    (seen,) = progress(context)
    assert seen is not None
    assert (seen.n, seen.total, seen.text[:10]) == (0, 10, "5: nan/10 ")


def test_outside_of_ranks_it_iterates_with_or_without_tqdm() -> None:
    code = "import sys; {}import nbmp; print(list(nbmp.progress(range(3), desc='here')))"
    for hide in ("", "sys.modules['tqdm'] = None; "):
        done = subprocess.run([sys.executable, "-c", code.format(hide)], capture_output=True, text=True, check=True)
        assert done.stdout == "[0, 1, 2]\n"
        assert "Error" not in done.stderr
    assert done.stderr == ""


def test_nothing_to_iterate_is_an_error() -> None:
    with pytest.raises(TypeError, match="update"):
        next(iter(nbmp.progress(total=3)))


def count_slowly(rank: int, path: str) -> None:
    with nbmp.progress(total=10, desc="slowly") as bar:
        for _ in range(2):
            bar.update(1)
            functions.wait_for(rank, f"{path}{bar.n:.0f}")


def test_where_no_table_shows_it_a_line_says_now_and_then_how_far_ranks_are(
    method: str, tmp_path: Path, capfd: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(milestones, "EVERY", 0.05)
    context = functions.begin(count_slowly, (f"{tmp_path}/go",), 1, method)
    seen = ""
    for step in (1, 2):
        said = f"[0] slowly: {step}/10 ["
        while said not in seen:
            seen += capfd.readouterr().err
            time.sleep(0.01)
        (tmp_path / f"go{step}").touch()
    assert context.join()
    assert len((seen + capfd.readouterr().err).splitlines()) == 2  # nothing twice
