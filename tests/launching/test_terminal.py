"""Lines as a terminal shows them: carriage returns, backspaces, colours."""

from __future__ import annotations

import os

import pytest

from nbmp.launching.private import Descriptor
from nbmp.launching.written import terminal
from nbmp.launching.written.lines import RankStream
from tests.launching import functions
from tests.waiting import until

RED, GREEN, OFF = "\x1b[31m", "\x1b[32m", "\x1b[0m"


@pytest.mark.parametrize(
    ("line", "seen"),
    [
        ("plain", "plain"),
        ("10 %\r50 %\r100 %", "100 %"),
        ("windows\r", "windows"),
        ("a long line\rshort", "shortg line"),
        ("a\rb\r\rc\r", "c"),
        ("", ""),
        ("\r", ""),
        ("spin |\b/\b-", "spin -"),
        ("abc\b\bX", "aXc"),
        ("\b\bx", "x"),
        ("12%\b\b\b34%\b\b\b", "34%"),
        ("a long line\r\x1b[Kshort", "short"),
        ("a long line\r\x1b[2Kshort", "short"),
        (f"{RED}red{OFF}\rblue", "blue"),
        (f"xxxx\r{RED}re{OFF}", f"{RED}re{OFF}xx"),
        (f"{RED}x\rab", f"{RED}ab"),
        (f"{RED}left on", f"{RED}left on"),
    ],
)
def test_line_is_settled_as_on_a_terminal(line: str, seen: str) -> None:
    assert terminal.settled(line) == seen
    assert terminal.settled(terminal.unsettled(line)) == seen


@pytest.mark.parametrize("line", ["a long line\rsho", "spin |\b", "abc\b\bX", "ab\rX\r", "plain"])
@pytest.mark.parametrize("more", ["rt", "\rX", "\b\b"])
def test_short_form_of_a_line_goes_on_as_the_line_does(line: str, more: str) -> None:
    assert terminal.settled(terminal.unsettled(line) + more) == terminal.settled(line + more)


def test_colours_are_switched_on_and_off_in_each_line() -> None:
    text, style = terminal.finished(f"{RED}one\ntwo\nthree{OFF}\nfour", "")
    assert text.split("\n") == [f"{RED}one{OFF}", f"{RED}two{OFF}", f"{RED}three{OFF}", "four"]
    assert style == ""


def test_style_that_is_never_switched_off_stays_short() -> None:
    style = ""
    for number in range(1000):
        _, style = terminal.finished(f"\x1b[38;5;{number % 256}mx\n{RED}y", style)
    assert style.endswith(RED)
    assert len(style) < 200


def write_raw(rank: int, text: str) -> None:
    os.write(1, text.encode())
    os.write(2, b"from stderr\n")


def test_colour_left_on_does_not_reach_the_next_tag(method: str, capfd: pytest.CaptureFixture[str]) -> None:
    context = functions.begin(write_raw, (f"{RED}alarm\nstill red\n{OFF}calm\n",), 1, method)
    assert context.join()
    assert capfd.readouterr().out == f"[0] {RED}alarm{OFF}\n[0] {RED}still red{OFF}\n[0] {RED}{OFF}calm\n"


def write_over(rank: int, path: str) -> None:
    for number in range(200_000):
        os.write(1, f"\rstep {number} of many".encode())
    functions.wait_for(rank, path)


def test_line_that_is_written_over_for_long_is_the_last_line_and_takes_no_memory(method: str, tmp_path: object) -> None:
    context = functions.begin(write_over, (f"{tmp_path}/go",), 1, method)
    record = context.ranks[0]
    assert until(lambda: record.last_line == "step 199999 of many")
    assert sum(map(len, record.streams[0]._partial)) < 100
    open(f"{tmp_path}/go", "w").close()
    assert context.join()
    assert context.output(0) == "step 199999 of many\n"


def test_last_line_is_that_of_the_stream_that_wrote_last(method: str, capfd: pytest.CaptureFixture[str]) -> None:
    context = functions.begin(write_raw, (f"{GREEN}from stdout{OFF}\n",), 1, method)
    assert context.join()
    assert context.ranks[0].last_line in ("from stderr", "from stdout")


def test_reading_in_pieces_gives_the_same_lines() -> None:
    text = f"one\r\n{RED}two\nthree{OFF} \rTHR\nab\b\bXY\nlast".encode()
    expected = ["one", f"{RED}two{OFF}", f"THR{RED}ee{OFF} ", "XY", "last"]
    for size in (1, 2, 5, len(text)):
        read, write = os.pipe()
        stream = RankStream(0, "stdout", Descriptor(read))
        found = ""
        for start in range(0, len(text), size):
            os.write(write, text[start : start + size])
            found += "".join(chunk.text for chunk in stream.read_all())
        os.close(write)
        found += "".join(chunk.text for chunk in stream.finish())
        stream.pipe.close()
        assert [line.replace(f"{RED}{OFF}", "") for line in found.splitlines()] == expected, size


def test_line_that_does_not_end_is_broken_before_it_takes_all_memory() -> None:
    read, write = os.pipe()
    stream = RankStream(0, "stdout", Descriptor(read), most=1000)
    found = ""
    for _ in range(30):
        os.write(write, b"x" * 100)
        found += "".join(chunk.text for chunk in stream.read_all())
    os.close(write)
    found += "".join(chunk.text for chunk in stream.finish())
    stream.pipe.close()
    assert found.replace("\N{HORIZONTAL ELLIPSIS}\n\N{HORIZONTAL ELLIPSIS}", "") == "x" * 3000 + "\n"
    assert max(map(len, found.splitlines())) < 1200


def lines_of(writes: list[str]) -> tuple[str, int]:
    """Return what a stream makes of it, and the most characters that it would look at again."""
    read, write = os.pipe()
    stream, most, found = RankStream(0, "stdout", Descriptor(read)), 0, ""
    for text in writes:
        os.write(write, text.encode())
        found += "".join(chunk.text for chunk in stream.read_all())
        most = max(most, sum(map(len, stream._partial)))
    os.close(write)
    found += "".join(chunk.text for chunk in stream.finish())
    stream.pipe.close()
    return found, most


class CountingScreen(terminal._Screen):
    looked_at = 0

    def __init__(self, line: str) -> None:
        CountingScreen.looked_at += len(line)
        super().__init__(line)


@pytest.mark.parametrize("piece", ["y" * 60_000 + "\b", f"{RED}x" * 6000 + "\b", "\b-" * 5000 + "y" * 5001])
def test_work_for_a_long_line_with_backspaces_is_in_proportion_to_it(
    piece: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(terminal, "_Screen", CountingScreen)
    CountingScreen.looked_at = 0
    found, most = lines_of([piece] * 12)
    assert CountingScreen.looked_at < 5 * len(piece) * 12
    assert most < 10 * terminal.SCREEN
    assert terminal.uncoloured(found) == terminal.uncoloured(terminal.settled(piece * 12)) + "\n"


def test_backspace_after_a_very_long_line_takes_no_cell_for_each_character(monkeypatch: pytest.MonkeyPatch) -> None:
    put: list[int] = []
    kept = terminal._Screen._put

    def counting(self: terminal._Screen, text: str) -> None:
        put.append(len(text))
        kept(self, text)

    monkeypatch.setattr(terminal._Screen, "_put", counting)
    assert terminal.settled(f"{RED}{'x' * 1_000_000}\bY{OFF}") == f"{RED}{'x' * 995_904}{OFF}{RED}{'x' * 4095}Y{OFF}"
    assert sum(put) <= terminal.SCREEN + 1


def test_long_line_is_seen_as_a_whole_after_it_was_written_over_at_its_end() -> None:
    text = "".join(f"{number} " for number in range(20_000))
    assert lines_of([text[:60_000], "|", "\b/", "\b", text[60_000:], f"{GREEN}!{OFF}\b?\nnext\n"])[0] == (
        f"{text}?\nnext\n"
    )
