"""tqdm in ranks: its bar is the rank's, and no flood of lines."""

from __future__ import annotations

import io
import os
import re
import threading

import pytest

import nbmp
from tests.launching import functions
from tests.waiting import until

pytest.importorskip("tqdm")

Capture = pytest.CaptureFixture[str]


def bars(rank: int, module: str) -> None:
    from importlib import import_module

    tqdm = import_module(module).tqdm
    for _ in tqdm(range(200), desc="outer", mininterval=0, miniters=1):
        for _ in tqdm(range(3), desc="inner", leave=False, mininterval=0, miniters=1):
            pass


@pytest.mark.parametrize("module", ["tqdm", "tqdm.auto", "tqdm.notebook"])
def test_bar_is_on_the_board_and_its_last_state_is_one_line(method: str, module: str, capfd: Capture) -> None:
    context = functions.begin(bars, (module,), 2, method)
    assert context.join()
    for record in context.ranks:
        assert record.progress is not None
        assert record.progress[:2] == (200, 200)
        assert re.fullmatch(r"outer: 200/200 \[.*it/s\]", record.progress.text)
        assert record.output.lines == 1
    captured = capfd.readouterr()
    lines = captured.err if module != "tqdm.notebook" else captured.out
    assert len(lines.splitlines()) == 2
    assert all(re.match(r"\[[01]\] outer: 100%\|█+\| 200/200 \[", line) for line in lines.splitlines())


def hold_and_draw(rank: int, path: str) -> None:
    from tqdm import tqdm

    bar = tqdm(total=50)
    bar.set_description("work")
    bar.set_postfix(loss=0.25)
    bar.update(5)
    bar.refresh()
    functions.wait_for(rank, path)
    bar.reset(total=10)
    bar.update(10)
    tqdm.write("a line between")
    bar.close()


def test_description_postfix_and_steps_show_while_it_runs(method: str, capfd: Capture, tmp_path: object) -> None:
    context = functions.begin(hold_and_draw, (f"{tmp_path}/go",), 1, method)
    record = context.ranks[0]
    assert until(lambda: record.progress is not None and record.progress.n == 5)
    assert record.progress is not None
    assert record.progress.text.startswith("work: 5/50 [")
    assert "loss=0.25" in record.progress.text
    open(f"{tmp_path}/go", "w").close()
    assert context.join()
    assert record.progress[:2] == (10, 10)
    assert capfd.readouterr().out == "[0] a line between\n"


def draw_elsewhere(rank: int) -> str:
    from tqdm import tqdm

    file = io.StringIO()
    for _ in tqdm(range(2), file=file):
        pass
    return file.getvalue()


def test_bar_with_a_file_of_its_own_is_drawn_there(method: str, capfd: Capture) -> None:
    context = functions.begin(draw_elsewhere, (), 1, method)
    assert context.join()
    assert "100%" in context.results[0]
    assert context.ranks[0].progress is None
    assert capfd.readouterr() == ("", "")


def disabled(rank: int) -> int:
    from tqdm import tqdm

    bar = tqdm(range(3), disable=True)
    bar.clear()
    bar.refresh()
    bar.set_description("off")
    return sum(bar)


def test_disabled_bar_shows_nothing(method: str, capfd: Capture) -> None:
    context = functions.begin(disabled, (), 1, method)
    assert context.join()
    assert context.results == [3]
    assert context.ranks[0].progress is None
    assert capfd.readouterr() == ("", "")


def one_bar(rank: int) -> int:
    from tqdm import tqdm

    if rank == 0:
        tqdm.get_lock().acquire()
        os.kill(os.getpid(), 9)
    with tqdm(range(5)) as bar:
        return sum(1 for _ in bar) + int(bar.pos)


def test_rank_killed_inside_tqdm_does_not_stop_the_others(capfd: Capture) -> None:
    from tqdm import tqdm

    with tqdm(total=3, file=io.StringIO()), tqdm.get_lock():  # held, and a bar open, in the launching process
        context = functions.begin(one_bar, (), 3, "fork")
        with pytest.raises(nbmp.ProcessExitedException):
            context.join(grace_period=20)
    assert context.results[1:] == [5, 5]


def watched(rank: int) -> list[str]:
    from tqdm import tqdm

    with tqdm(range(2)):
        return [type(thread).__name__ for thread in threading.enumerate()]


def test_tqdm_s_thread_for_slow_bars_runs_in_a_forked_rank() -> None:
    from tqdm import tqdm

    with tqdm(total=1, file=io.StringIO()):
        (threads,) = nbmp.launch(watched, start_method="fork")
    tqdm.monitor.exit()
    tqdm.monitor = None
    assert "TMonitor" in threads
