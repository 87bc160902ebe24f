"""What ranks write and display, as the front end gets it."""

from __future__ import annotations

import pytest

from tests.notebook.kernels import Kernel

pytestmark = pytest.mark.may_keep("children")  # the module's kernel, which keeps a fork server

LAUNCH = "import nbmp, time, os, signal\n"


def test_six_thousand_lines_come_whole_once_and_in_order(kernel: Kernel, method: str) -> None:
    cell = kernel.run(
        LAUNCH + "import logging, sys\n"
        "logging.basicConfig(level=logging.INFO, format='%(levelname)s %(message)s', force=True)\n"
        "def talk(rank):\n"
        "    for i in range(3000):\n        print(f'R{rank}:{i}:' + 'x' * 60)\n"
        "    logging.info('log from %d', rank)\n"
        "    print(f'tail {rank}', end='')\n"
        f"nbmp.start_processes(talk, nprocs=2, start_method='{method}')"
    )
    lines = cell.text().splitlines()
    for rank in range(2):
        own = [line for line in lines if line.startswith(f"[{rank}] ")]
        assert own == [f"[{rank}] R{rank}:{i}:" + "x" * 60 for i in range(3000)] + [f"[{rank}] tail {rank}"]
    assert len(lines) == 6002
    assert sorted(cell.text("stderr").splitlines()) == ["[0] INFO log from 0", "[1] INFO log from 1"]


def test_late_output_belongs_to_the_cell_that_launched(kernel: Kernel, method: str) -> None:
    kernel.run(
        LAUNCH + "def late(rank, path):\n    while not os.path.exists(path):\n        time.sleep(0.01)\n"
        "    print('late line')"
    )
    first = kernel.run(
        f"if os.path.exists('go'): os.unlink('go')\n"
        f"ctx = nbmp.start_processes(late, ('go',), nprocs=1, join=False, start_method='{method}')"
    )
    assert "late" not in first.text()
    second = kernel.run("open('go', 'w').close()\nctx.join()\nprint('second cell')")
    kernel.until(lambda: "late line" in first.text(), "the late line is under the first cell", 10)
    assert second.text() == "second cell\n"


def test_last_words_before_a_kill_are_shown(kernel: Kernel, method: str) -> None:
    kernel.run(LAUNCH + "def crash(rank):\n    print('last words')\n    os.kill(os.getpid(), signal.SIGKILL)")
    cell = kernel.run(f"nbmp.start_processes(crash, nprocs=1, start_method='{method}')", fails=True)
    assert cell.text() == "[0] last words\n"


def test_tags_are_coloured_and_streams_kept_apart(kernel: Kernel) -> None:
    cell = kernel.run("%%mpspawn -n 1\nimport sys\nprint('out')\nprint('err', file=sys.stderr)")
    streams = {m.content["name"]: m.content["text"] for m in cell.of("stream")}
    assert streams == {"stdout": "\x1b[36m[0]\x1b[0m out\n", "stderr": "\x1b[36m[0]\x1b[0m err\n"}


def test_unusual_line_breaks_stay_inside_their_line(kernel: Kernel) -> None:
    cell = kernel.run("%%mpspawn -n 1\nprint('a\\x0cb\\u2028c')")
    assert cell.text() == "[0] a\x0cb\u2028c\n"


def test_output_goes_where_the_launching_code_had_sent_it(kernel: Kernel) -> None:
    cell = kernel.run(
        LAUNCH + "import io, contextlib\nbuffer = io.StringIO()\n"
        "with contextlib.redirect_stdout(buffer):\n"
        "    nbmp.start_processes(lambda rank: print('captured', rank), nprocs=1)"
    )
    assert cell.text() == ""
    assert kernel.run("buffer.getvalue()").value == "'[0] captured 0\\n'"


def test_displays_of_ranks_are_rich_and_in_order_with_prints(kernel: Kernel, method: str) -> None:
    kernel.run("from IPython.display import HTML, Image, clear_output, display, update_display")
    cell = kernel.run(
        f"%%mpspawn -n 1 --start-method {method}\n"
        "print('before')\ndisplay(HTML('<b>bold</b>'))\nprint('between')\n"
        "handle = display('first', display_id='here')\nupdate_display('second', display_id='here')\n"
        "display(Image(data=b'\\x89PNG\\r\\n\\x1a\\n' + b'0' * 8))\nclear_output(wait=True)\nprint('after')"
    )
    seen = [
        m
        for m in cell.of("stream", "display_data", "update_display_data", "clear_output")
        if "nbmp-ranks" not in str(m.content) and "widget-view" not in str(m.content)
    ]
    kinds = [m.kind for m in seen]
    assert kinds == [
        "stream",
        "display_data",
        "stream",
        "display_data",
        "update_display_data",
        "display_data",
        "clear_output",
        "stream",
    ]
    assert seen[1].content["data"]["text/html"] == "<b>bold</b>"
    assert seen[3].content["transient"]["display_id"] == seen[4].content["transient"]["display_id"] == "here"
    assert isinstance(seen[5].content["data"]["image/png"], str)
    assert seen[6].content == {"wait": True}


def test_a_display_is_the_first_thing_a_rank_does(kernel: Kernel, method: str) -> None:
    kernel.run("from IPython.display import HTML\ndef show(rank):\n    display(HTML('<i>only</i>'))")
    cell = kernel.run(LAUNCH + f"nbmp.start_processes(show, nprocs=2, start_method='{method}')")
    assert [m.content["data"].get("text/html") for m in cell.of("display_data")].count("<i>only</i>") == 2


def test_a_widget_shown_by_a_rank_is_shown_as_text(kernel: Kernel) -> None:
    cell = kernel.run("%%mpspawn -n 1 --no-monitor\nimport ipywidgets\ndisplay(ipywidgets.IntSlider())")
    (shown,) = cell.of("display_data")
    assert list(shown.content["data"]) == ["text/plain"]


def test_asking_for_input_is_a_clear_error_at_once(kernel: Kernel, method: str) -> None:
    for call in ("input('name? ')", "import getpass; getpass.getpass('secret? ')"):
        cell = kernel.run(f"%%mpspawn -n 1 --start-method {method}\n{call}", fails=True)
        assert "StdinError" in cell.error
        assert cell.ended - cell.started < 10
