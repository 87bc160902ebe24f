"""What ranks write and display, as the front end gets it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.notebook.kernels import Cell, Kernel, plain

pytestmark = pytest.mark.may_keep("children")  # the module's kernel, which keeps a fork server

WIDGET = "application/vnd.jupyter.widget-view+json"
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


def outputs(cell: Cell) -> list[tuple[str, Any]]:
    """Return what was shown, in order, without the monitor: the text of a stream, or what a display showed."""
    found: list[tuple[str, Any]] = []
    for message in cell.of("stream", "display_data", "update_display_data", "clear_output"):
        data = message.content.get("data", {})
        if message.kind == "stream":
            found.append((message.content["name"], plain(message.content["text"])))
        elif WIDGET not in data and "nbmp-ranks" not in data.get("text/html", ""):
            found.append((message.kind, message.content))
    return found


def test_displays_of_ranks_are_rich_and_in_order_with_prints(kernel: Kernel, method: str) -> None:
    kernel.run("from IPython.display import HTML, Image, display, update_display")
    cell = kernel.run(
        f"%%mpspawn -n 1 --start-method {method}\n"
        "print('before')\ndisplay(HTML('<b>bold</b>'))\nprint('between')\n"
        "handle = display('first', display_id='here')\nupdate_display('second', display_id='here')\n"
        "display(Image(data=b'\\x89PNG\\r\\n\\x1a\\n' + b'0' * 8))\nprint('after')"
    )
    seen = outputs(cell)
    caption = ("stdout", "[0] \n")
    assert seen[0] == ("stdout", "[0] before\n")
    assert [kind for kind, _ in seen if kind != "update_display_data"] == [
        "stdout",
        *("stdout", "display_data"),
        "stdout",
        *("stdout", "display_data"),
        *("stdout", "display_data"),
        "stdout",
    ]
    assert [seen[1], seen[4]] == [caption, caption]
    shown = [content for kind, content in seen if kind == "display_data"]
    (updated,) = [content for kind, content in seen if kind == "update_display_data"]
    assert shown[0]["data"]["text/html"] == "<b>bold</b>"
    assert (shown[1]["data"]["text/plain"], updated["data"]["text/plain"]) == ("'first'", "'second'")
    assert shown[1]["transient"] == updated["transient"]
    assert isinstance(shown[2]["data"]["image/png"], str)


def test_text_that_a_rank_displays_is_shown_as_its_lines(kernel: Kernel) -> None:
    cell = kernel.run("%%mpspawn -n 2 --no-monitor\ndisplay({'rank': rank})")
    assert sorted(cell.text().splitlines()) == ["[0] {'rank': 0}", "[1] {'rank': 1}"]
    assert cell.of("display_data") == []


def test_ranks_that_run_the_same_code_update_their_own_outputs(kernel: Kernel) -> None:
    cell = kernel.run(
        "%%mpspawn -n 2 --no-monitor\nfrom IPython.display import display, update_display\n"
        "display(f'first {rank}', display_id='same')\nupdate_display(f'second {rank}', display_id='same')"
    )
    state: dict[str, str] = {}
    for _, content in [seen for seen in outputs(cell) if seen[0] != "stdout"]:
        state[content["transient"]["display_id"]] = content["data"]["text/plain"]
    assert sorted(state.values()) == ["'second 0'", "'second 1'"]


def test_a_rank_can_update_what_the_notebook_displays(kernel: Kernel) -> None:
    first = kernel.run("from IPython.display import display\nhandle = display('from the notebook', display_id=True)")
    cell = kernel.run("%%mpspawn -n 1\nhandle.update('from rank 0')")
    (updated,) = [content for kind, content in outputs(cell) if kind == "update_display_data"]
    assert updated["transient"] == first.of("display_data")[0].content["transient"]
    assert updated["data"]["text/plain"] == "'from rank 0'"


def test_a_rank_clears_what_it_displayed_and_nothing_else(kernel: Kernel, method: str) -> None:
    cell = kernel.run(
        f"%%mpspawn -n 1 --start-method {method}\n"
        "from IPython.display import HTML, clear_output, display\nimport time\n"
        "print('a line')\ndisplay(HTML('frame 0'))\n"
        "for frame in range(1, 6):\n    clear_output(wait=True)\n    display(HTML(f'frame {frame}'))\n"
        "time.sleep(0.3)\nclear_output()\ndisplay(HTML('the end'))"
    )
    seen = outputs(cell)
    assert "clear_output" not in [kind for kind, _ in seen]
    places = {content["transient"]["display_id"] for kind, content in seen if kind != "stdout"}
    assert len(places) == 1
    shown = [content["data"].get("text/html", "") for kind, content in seen if kind != "stdout"]
    assert shown[0] == "frame 0"
    assert "frame 5" in shown  # those in between may be left out
    assert shown[-2:] == ["", "the end"]
    assert cell.text() == "[0] a line\n[0] \n"


def test_a_display_is_the_first_thing_a_rank_does(kernel: Kernel, method: str) -> None:
    kernel.run("%reset_selective -f ^display$\nfrom IPython.display import HTML")
    kernel.run("def show(rank):\n    display(HTML('<i>only</i>'))")
    cell = kernel.run(LAUNCH + f"nbmp.start_processes(show, nprocs=2, start_method='{method}')")
    assert [m.content["data"].get("text/html") for m in cell.of("display_data")].count("<i>only</i>") == 2


def test_get_ipython_is_there_in_a_function(kernel: Kernel, method: str) -> None:
    kernel.run("def ask(rank):\n    return get_ipython().run_line_magic('pwd', '')")
    assert kernel.run(LAUNCH + f"nbmp.launch(ask, start_method='{method}') == [os.getcwd()]").value == "True"


def test_a_widget_shown_by_a_rank_is_shown_as_text(kernel: Kernel) -> None:
    cell = kernel.run("%%mpspawn -n 1 --no-monitor\nimport ipywidgets\ndisplay(ipywidgets.IntSlider())")
    assert cell.of("display_data") == []
    assert "IntSlider(value=0" in cell.text()


def test_asking_for_input_is_a_clear_error_at_once(kernel: Kernel, method: str) -> None:
    for call in ("input('name? ')", "import getpass; getpass.getpass('secret? ')"):
        cell = kernel.run(f"%%mpspawn -n 1 --start-method {method}\n{call}", fails=True)
        assert "StdinError" in cell.error
        assert cell.ended - cell.started < 10


def test_a_flood_of_displays_is_held_back_and_its_end_is_seen(kernel: Kernel) -> None:
    cell = kernel.run(
        "%%mpspawn -n 2 --no-monitor\nfrom IPython.display import HTML\n"
        "for number in range(400):\n    display(HTML(f'<b>{number}</b>'))"
    )
    shown = [content["data"]["text/html"] for kind, content in outputs(cell) if kind == "display_data"]
    assert len(shown) == 202
    assert cell.text().count("more than 200 outputs") == 2
    last = {content["transient"]["display_id"]: content["data"] for kind, content in outputs(cell) if kind != "stdout"}
    assert [data["text/html"] for data in last.values()].count("<b>399</b>") == 2


@pytest.mark.parametrize(
    ("call", "error"),
    [
        ("display({'text/plain': 'x', 'application/x': object()}, raw=True)", "ValueError"),
        ("from IPython.display import HTML; display(HTML('\\ud800'))", "UnicodeEncodeError"),
    ],
)
def test_what_json_cannot_take_is_an_error_where_it_is_displayed(kernel: Kernel, call: str, error: str) -> None:
    kernel.run("import nbmp")
    cell = kernel.run(f"%%mpspawn -n 1 --no-monitor\n{call}\nprint('not here')", fails=True)
    assert error in cell.error
    assert cell.text() == ""


def test_what_a_kernel_makes_plain_a_rank_makes_plain(kernel: Kernel) -> None:
    cell = kernel.run(
        "%%mpspawn -n 1 --no-monitor\nimport numpy\nfrom datetime import datetime\n"
        "display({'application/x': {'when': datetime(2020, 1, 2, 3), 'n': [numpy.float64(2)], 'nan': float('nan')}},"
        " raw=True)"
    )
    (shown,) = cell.of("display_data")
    data = shown.content["data"]["application/x"]
    assert data.pop("when").startswith("2020-01-02T03")
    assert data == {"n": [2.0], "nan": "nan"}
