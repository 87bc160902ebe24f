"""Ranks that print as fast as they can: the kernel stays small and answers, no line is cut, the end is seen."""

from __future__ import annotations

import re

import pytest

from tests.notebook.kernels import Kernel, Message, plain

pytestmark = pytest.mark.may_keep("children", "descriptors")  # of the module's kernel, its fork server, jupyter_client

FLOOD = """
import nbmp, psutil, time

def flood(rank, seconds):
    end, count = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        for _ in range(100):
            print(f'R{rank}:{count}:' + 'x' * 60)
            count += 1
    print(f'the end of {rank}')
    return count

def memory():
    return psutil.Process().memory_info().rss
"""

WATCH = """
before = most = memory()
longest = 0
launch = nbmp.start_processes(flood, (5.0,), 16, join=False)
while not launch.finished.is_set():
    begun = time.monotonic()
    time.sleep(0.001)
    longest = max(longest, time.monotonic() - begun)
    most = max(most, memory())
print('grown by', most - before)
"""

LINE = re.compile(r"\[(\d+)\] (R\1:\d+:x{60}|the end of \1)")


def overflow(messages: list[Message]) -> str:
    """Return the last form of what stands in for lines that were held back."""
    texts = [message.content.get("data", {}).get("text/plain", "") for message in messages]
    return plain(["", *(text for text in texts if "held back" in text)][-1])


def test_sixteen_ranks_that_print_for_five_seconds_leave_the_kernel_small_and_no_line_cut(kernel: Kernel) -> None:
    kernel.run(FLOOD)
    cell = kernel.run(WATCH)
    *shown, grown = cell.text().splitlines()
    assert int(grown.split()[-1]) <= 50e6
    head, *last = overflow(cell.messages).split("\n")
    assert all(LINE.fullmatch(line) for line in shown + last if line != "\N{VERTICAL ELLIPSIS}")
    assert len(shown) == 8000
    for rank in range(16):
        numbers = [int(line.split(":")[1]) for line in shown if line.startswith(f"[{rank}] ")]
        assert numbers == list(range(len(numbers)))
        assert f"[{rank}] the end of {rank}" in last
    printed = sum(map(int, (kernel.run("launch.results").value or "")[1:-1].split(","))) + 16
    visible = len(shown) + len([line for line in last if line != "\N{VERTICAL ELLIPSIS}"])
    found = re.fullmatch(r"… ([\d,]+) lines of \d+ ranks held back: nbmp\.output\(rank, launch=(\d+)\)", head)
    assert found is not None
    assert int(found[1].replace(",", "")) == printed - visible
    kept = eval(kernel.run(f"nbmp.output(3, launch={found[2]})").value or "").splitlines()
    assert kept[0].startswith("R3:0:")
    assert kept[-1] == "the end of 3"
    assert len([message for message in cell.messages if message.kind != "comm_msg"]) < 200


def test_the_kernel_answers_while_ranks_print_as_fast_as_they_can(kernel: Kernel) -> None:
    """On a machine whose cores are all taken by the ranks: the bound tells slow from stuck, no more."""
    kernel.run(FLOOD)
    kernel.run(WATCH.replace("5.0", "2.0"))
    assert float(kernel.run("longest").value or "nan") < 2


def test_four_thousand_lines_of_four_ranks_are_all_shown(kernel: Kernel, method: str) -> None:
    cell = kernel.run(f"%%mpspawn -n 4 --start-method {method}\nfor number in range(1000): print(number, 'x' * 300)")
    for rank in range(4):
        own = [line for line in cell.text().splitlines() if line.startswith(f"[{rank}] ")]
        assert own == [f"[{rank}] {number} {'x' * 300}" for number in range(1000)]


def test_last_words_of_a_rank_that_is_killed_in_a_flood_are_shown(kernel: Kernel) -> None:
    cell = kernel.run(
        "%%mpspawn -n 2\nimport os\nfor number in range(20_000): print(number)\n"
        "print('last words of', rank)\nos.kill(os.getpid(), 9)",
        fails=True,
    )
    shown = overflow(cell.messages) + cell.text()
    assert "last words of" in shown


def test_slow_lines_after_a_flood_are_seen_as_they_come(kernel: Kernel) -> None:
    kernel.run("import os\nif os.path.exists('go'): os.unlink('go')")
    cell = kernel.start(
        "%%mpspawn -n 1\nimport os, time\nfor number in range(20_000): print(number)\n"
        "time.sleep(1)\nprint('much later')\n"
        "while not os.path.exists('go'): time.sleep(0.01)"
    )
    kernel.until(
        lambda: any("much later" in str(message.content) for message in cell.of("update_display_data")), "later"
    )
    open(f"{kernel.folder}/go", "w").close()
    kernel.until(lambda: bool(cell.ended), "the cell is done")


def test_what_is_written_elsewhere_is_not_held_back(kernel: Kernel) -> None:
    kernel.run("import contextlib, io, nbmp\nbuffer = io.StringIO()")
    cell = kernel.run(
        "with contextlib.redirect_stdout(buffer):\n"
        "    nbmp.launch(lambda rank: [print(number) for number in range(20_000)] and None, nprocs=1)"
    )
    assert kernel.run("buffer.getvalue() == ''.join(f'[0] {number}\\n' for number in range(20_000))").value == "True"
    assert cell.text() == ""


def test_output_of_launches_is_found_by_number_and_of_the_last_one_without(kernel: Kernel) -> None:
    kernel.run("%%mpspawn -n 2\nprint('first', rank)")
    number = kernel.run("nbmp.last_launch().number").value
    kernel.run("%%mpspawn -n 1\nprint('second', rank)")
    assert kernel.run(f"nbmp.output(1, launch={number})").value == "'first 1\\n'"
    assert kernel.run("nbmp.output(0)").value == "'second 0\\n'"
    assert "no rank 1" in kernel.run("nbmp.output(1)", fails=True).error
    assert "nothing is kept of a launch 999" in kernel.run("nbmp.output(0, launch=999)", fails=True).error


def test_floods_of_pools_and_processes_are_held_back_and_found(kernel: Kernel) -> None:
    kernel.run("def chatter(_):\n    for number in range(20_000): print(number)")
    cell = kernel.run("import nbmp\npool = nbmp.Pool(1)\npool.map(chatter, [0])\nprint('mapped')")
    kernel.until(lambda: "19999" in overflow(cell.messages), "the last line is shown")
    where = overflow(cell.messages).split(": ")[1].split("\n")[0]
    assert kernel.run(f"{where}.endswith('\\n19999\\n')").value == "True"
    kernel.run("pool.terminate(); pool.join()")
    cell = kernel.run("child = nbmp.Process(target=chatter, args=(0,), name='Talker')\nchild.start(); child.join()")
    head = overflow(cell.messages).split("\n")[0]
    assert " lines of Talker held back: nbmp.output(" in head
    assert kernel.run(f"{head.split(': ')[1]}.endswith('\\n19999\\n')").value == "True"


def test_sixteen_ranks_that_write_without_ends_of_lines_leave_the_kernel_small(kernel: Kernel) -> None:
    kernel.run(FLOOD.replace("{count}:' + 'x' * 60", "{count}:' + 'x' * 60, end=' '"))
    cell = kernel.run(WATCH.replace("5.0", "3.0"))
    assert int(cell.text().splitlines()[-1].split()[-1]) <= 50e6


def test_display_after_a_flood_still_has_its_caption(kernel: Kernel) -> None:
    cell = kernel.run(
        "%%mpspawn -n 1 --no-monitor\nfrom IPython.display import HTML, display\n"
        "for number in range(20_000): print(number)\ndisplay(HTML('<b>figure</b>'))"
    )
    kinds = [(m.kind, m.content.get("text", "")[-4:]) for m in cell.of("stream", "display_data")]
    assert kinds[-2:] == [("stream", "[0m \n"[-4:]), ("display_data", "")]
