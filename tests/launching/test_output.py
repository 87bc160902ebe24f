"""What ranks write: every line once, whole, in order, tagged; whoever wrote it."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time

import pytest

import nbmp
from tests.launching import functions

Capture = pytest.CaptureFixture[str]


def lines_of(capfd: Capture, method: str, function: object, *args: object, nprocs: int = 1) -> list[str]:
    nbmp.launch(function, args, nprocs, start_method=method)  # type: ignore[arg-type]
    return capfd.readouterr().out.splitlines()


def write_by_every_means(rank: int) -> None:
    print("by print")
    os.write(1, b"by descriptor\n")
    subprocess.run(["echo", "by program"], check=True)
    libc = ctypes.CDLL(None)
    libc.printf(b"by C\n")
    libc.fflush(None)
    sys.stdout.write("by sys.stdout\n")
    sys.__stdout__.write("by sys.__stdout__\n")  # type: ignore[union-attr]
    print("to stderr", file=sys.stderr)
    os.write(2, b"to descriptor 2\n")


def test_everything_that_is_written_arrives_in_order_and_tagged(method: str, capfd: Capture) -> None:
    nbmp.launch(write_by_every_means, (), 2, start_method=method)
    captured = capfd.readouterr()
    by = ("print", "descriptor", "program", "C", "sys.stdout", "sys.__stdout__")
    for rank in range(2):
        assert [line for line in captured.out.splitlines() if line.startswith(f"[{rank}]")] == [
            f"[{rank}] by {means}" for means in by
        ]
        assert [line for line in captured.err.splitlines() if line.startswith(f"[{rank}]")] == [
            f"[{rank}] to stderr",
            f"[{rank}] to descriptor 2",
        ]


def write_raw(rank: int, pieces: list[bytes]) -> None:
    for piece in pieces:
        os.write(1, piece)
        time.sleep(0.02)


def test_last_line_without_its_end_is_kept(method: str, capfd: Capture) -> None:
    assert lines_of(capfd, method, write_raw, [b"first\nlast without end"]) == ["[0] first", "[0] last without end"]


def test_line_written_in_pieces_comes_out_whole(method: str, capfd: Capture) -> None:
    assert lines_of(capfd, method, write_raw, [b"one ", b"two ", b"three\n"], nprocs=2) in (
        ["[0] one two three", "[1] one two three"],
        ["[1] one two three", "[0] one two three"],
    )


def test_character_cut_by_writes_is_not_damaged(method: str, capfd: Capture) -> None:
    text = "Grüße 😀 日本"
    pieces = [bytes([byte]) for byte in text.encode()]
    assert lines_of(capfd, method, write_raw, [*pieces, b"\n"]) == [f"[0] {text}"]


def test_bytes_that_are_no_text_are_shown_as_such(method: str, capfd: Capture) -> None:
    assert lines_of(capfd, method, write_raw, [b"\xff\xfe raw\n"]) == ["[0] \ufffd\ufffd raw"]


def test_text_written_over_by_carriage_returns_shows_its_last_state(method: str, capfd: Capture) -> None:
    assert lines_of(capfd, method, write_raw, [b"10 %\r50 %\r", b"100 %\n", b"windows\r\n"]) == [
        "[0] 100 %",
        "[0] windows",
    ]


def say_and_crash(rank: int, number: int) -> None:
    print("last words")
    os.write(1, b"half a line")
    os.kill(os.getpid(), number)


@pytest.mark.parametrize("name", ["SIGKILL", "SIGSEGV"])
def test_crash_right_after_a_print_loses_nothing(method: str, name: str, capfd: Capture) -> None:
    with pytest.raises(nbmp.ProcessExitedException):
        nbmp.launch(say_and_crash, (int(signal.Signals[name]),), start_method=method)
    assert capfd.readouterr().out == "[0] last words\n[0] half a line\n"


def say_and_leave(rank: int) -> None:
    print("last words", flush=True)
    os._exit(0)


def test_leaving_at_once_after_a_print_loses_nothing(method: str, capfd: Capture) -> None:
    assert lines_of(capfd, method, say_and_leave) == ["[0] last words"]


def talk(rank: int, count: int) -> None:
    for index in range(count):
        print(f"R{rank}:{index}:" + "x" * 60)


def test_thousands_of_lines_of_two_ranks_arrive_whole_and_in_order(method: str, capfd: Capture) -> None:
    lines = lines_of(capfd, method, talk, 3000, nprocs=2)
    assert len(lines) == 6000
    for rank in range(2):
        mine = [line for line in lines if line.startswith(f"[{rank}] ")]
        assert mine == [f"[{rank}] R{rank}:{index}:" + "x" * 60 for index in range(3000)]


def test_line_longer_than_a_pipe_arrives_whole(method: str, capfd: Capture) -> None:
    (line,) = lines_of(capfd, method, functions.say, "x" * 3_000_000)
    assert line == "[0] " + "x" * 3_000_000


def print_at_exit(rank: int) -> None:
    import atexit

    atexit.register(print, "at exit")
    print("in the function")


def test_what_is_printed_at_exit_arrives(method: str, capfd: Capture) -> None:
    assert lines_of(capfd, method, print_at_exit) == ["[0] in the function", "[0] at exit"]


def test_output_arrives_while_the_rank_runs(method: str, capfd: Capture, tmp_path: object) -> None:
    context = functions.begin(say_then_wait, (f"{tmp_path}/go",), 1, method)
    seen = ""
    deadline = time.monotonic() + 20
    while "early" not in seen and time.monotonic() < deadline:
        seen += capfd.readouterr().out
        time.sleep(0.01)
    assert seen == "[0] early\n"
    assert context.ranks[0].last_line == "early"
    open(f"{tmp_path}/go", "w").close()
    assert context.join()


def say_then_wait(rank: int, path: str) -> None:
    print("early")
    functions.wait_for(rank, path)


def leave_a_program_behind(rank: int) -> None:
    subprocess.Popen(["sleep", "0.5"])


def test_program_left_behind_with_the_rank_s_output_does_not_hold_up_the_end(method: str) -> None:
    context = functions.begin(leave_a_program_behind, (), 1, method)
    assert context.join(20)
