"""Ctrl-C, or the notebook's stop button: SIGINT to the launching process only. Real scripts, real signals."""

from __future__ import annotations

import os
import re
import signal
import time
from pathlib import Path

from tests import scripts
from tests.waiting import content, none_runs

JOINING = """
    import os, sys, signal, time
    import nbmp
    from tests.launching import functions

    def stubborn(rank):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        functions.stay_whatever_is_asked(rank, ".")

    context = nbmp.start_processes(stubborn, nprocs=2, join=False, start_method=sys.argv[1])
    for _ in range(2):
        try:
            open("joining", "w").write("now")
            context.join()
        except KeyboardInterrupt:
            print("interrupted", flush=True)
        except nbmp.ProcessExitedException as error:
            print(error, len(error.failures), flush=True)
    print(nbmp.launch(functions.give, (1,), 2, start_method=sys.argv[1]))
"""


def pids_of_ranks(folder: Path) -> list[int]:
    return [int(content(folder / f"pid{rank}")) for rank in range(2)]


def test_interrupted_join_stops_all_ranks_and_says_so_again(method: str, tmp_path: Path) -> None:
    with scripts.started(tmp_path, JOINING, method) as script:
        pids = pids_of_ranks(tmp_path)
        content(tmp_path / "joining")
        begun = time.monotonic()
        script.send_signal(signal.SIGINT)
        out, err = script.communicate(timeout=20)
        assert time.monotonic() - begun < 10
    assert none_runs(pids)
    assert err == ""
    interrupted, stopped, by, result = out.splitlines()
    assert interrupted == "interrupted"
    assert stopped == "process 0 terminated with signal SIGKILL"
    assert by == "It was stopped by an interrupt. 0"
    assert result == "[1, 1]"  # and the next launch works


def test_interrupt_of_the_whole_group_reaches_only_the_launching_process(method: str, tmp_path: Path) -> None:
    with scripts.started(tmp_path, JOINING, method) as script:
        pids = pids_of_ranks(tmp_path)
        content(tmp_path / "joining")
        os.killpg(script.pid, signal.SIGINT)
        out, err = script.communicate(timeout=20)
    assert none_runs(pids)
    assert out.startswith("interrupted\n")
    assert "KeyboardInterrupt" not in err


STOPPING = """
    import sys, signal
    import nbmp
    from tests.launching import functions
    from tests.waiting import tell, content

    def stubborn(rank):
        signal.signal(signal.SIGTERM, lambda *_: tell(f"asked{rank}", "to end"))
        for _ in range(10):
            functions.stay(rank, ".")

    context = nbmp.start_processes(stubborn, nprocs=2, join=False, start_method=sys.argv[1])
    for rank in range(2):
        functions.wait_for(0, f"pid{rank}")
    try:
        context.stop(grace_period=50)
    except KeyboardInterrupt:
        print([record.state for record in context.ranks])
"""


def test_interrupt_while_ranks_are_being_stopped_kills_at_once(method: str, tmp_path: Path) -> None:
    with scripts.started(tmp_path, STOPPING, method) as script:
        pids = pids_of_ranks(tmp_path)
        for rank in range(2):
            content(tmp_path / f"asked{rank}")
        begun = time.monotonic()
        script.send_signal(signal.SIGINT)
        out, _ = script.communicate(timeout=20)
        assert time.monotonic() - begun < 10
    assert out == "['stopped', 'stopped']\n"
    assert none_runs(pids)


LAUNCHING = """
    import sys
    import nbmp
    from tests.launching import functions

    functions_of_main = lambda rank: functions.stay(rank, ".")
    nbmp.launch(functions_of_main, nprocs=2, start_method=sys.argv[1])
"""


def test_interrupted_script_ends_with_one_traceback_and_its_ranks(method: str, tmp_path: Path) -> None:
    with scripts.started(tmp_path, LAUNCHING, method) as script:
        pids = pids_of_ranks(tmp_path)
        script.send_signal(signal.SIGINT)
        _, err = script.communicate(timeout=20)
    assert none_runs(pids)
    assert script.returncode == -signal.SIGINT
    assert err.count("Traceback") == 1
    last = err.splitlines()[-1]
    assert last.startswith("KeyboardInterrupt: the ranks were stopped: ranks 0 and 1 ended ")
    assert last.endswith(" s after SIGTERM")


STARTING = """
    import os, sys, signal, threading
    import nbmp, psutil
    from tests.launching import functions

    method = sys.argv[1]
    nbmp.launch(functions.give, (1,), 1, start_method=method)  # helpers are there
    functions.settle()
    before = len(os.listdir("/proc/self/fd")), len(psutil.Process().children())
    interrupted = 0
    for delay in (0.001, 0.002, 0.003, 0.005, 0.007, 0.01, 0.015, 0.02, 0.03, 0.05, 0.08, 0.12):
        timer = threading.Timer(delay, os.kill, (os.getpid(), signal.SIGINT))
        try:
            timer.start()
            nbmp.launch(functions.stay, (".",), 2, start_method=method, timeout=5, grace_period=0.5)
        except KeyboardInterrupt:
            interrupted += 1
        except nbmp.LaunchTimeoutError:
            print("one was lost", delay, file=sys.stderr)
        timer.join()
    print(interrupted > 6)
    functions.settle()
    after = len(os.listdir("/proc/self/fd")), len(psutil.Process().children())
    print(before == after, threading.active_count())
    print(before, after, [os.readlink(p) for p in map("/proc/self/fd/{}".format, range(60)) if os.path.islink(p)],
          file=sys.stderr)
    print(nbmp.launch(functions.give, (1,), 2, start_method=method))
"""


def test_interrupts_while_ranks_are_started_leave_nothing(method: str, tmp_path: Path) -> None:
    done = scripts.run(tmp_path, STARTING, method)
    assert done.stdout == "True\nTrue 1\n[1, 1]\n", done.stderr


PRESSED_WHILE_STARTING = """
    import os, signal, sys
    import nbmp
    from nbmp.launching import frontends, process
    from tests.launching import functions

    come_alive = process.RankProcess._come_alive
    pids = []

    def reached(moment):
        if moment == wanted:
            os.kill(os.getpid(), signal.SIGINT)

    def start(rank, begin):
        reached(f"before rank {len(pids)}")
        come_alive(rank, begin)
        pids.append(rank.pid)

    process.RankProcess._come_alive = start
    frontends.PlainFrontend.watch = lambda *_: reached("when all are there")
    for wanted in ("before rank 0", "before rank 1", "when all are there"):
        for join in (False, True):
            pids.clear()
            try:
                nbmp.start_processes(functions.stay, (".",), 2, join, start_method=sys.argv[1])
            except KeyboardInterrupt as press:
                print(press, *pids, sep=";")
"""


def test_interrupt_while_ranks_are_started_says_what_became_of_them(method: str, tmp_path: Path) -> None:
    lines = scripts.output(tmp_path, PRESSED_WHILE_STARTING, method).splitlines()
    assert len(lines) == 6
    slow_server = r"the fork server \(pid \d+\) had not started all of them, those that ran were killed"
    for line in lines:
        told, *pids = line.split(";")
        assert re.fullmatch(rf"the ranks were stopped: (ranks 0 and 1 ended .* after SIGTERM|{slow_server})", told)
        assert none_runs(map(int, pids))


PRESSING = """
    import os, sys, signal, threading, time
    import nbmp, psutil
    from tests.launching import functions
    from tests.waiting import is_running

    method = sys.argv[1]

    def stubborn(rank):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        time.sleep(60)

    def press(delay, gap):
        time.sleep(delay)
        for _ in range(5):
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(gap)

    launching = []

    def interrupt(number, frame):
        if launching:
            raise KeyboardInterrupt

    def interrupt_a_launch(thread):
        launching.append(True)
        thread.start()
        try:
            nbmp.launch(stubborn, nprocs=3, start_method=method, timeout=20)
        finally:
            launching.clear()

    def living_ranks():
        found = psutil.Process().children(recursive=True)
        return [process for process in found if process.pid not in helpers and is_running(process.pid)]

    nbmp.launch(functions.give, (1,), 1, start_method=method)
    helpers = {process.pid for process in psutil.Process().children()}
    outcomes, left = set(), 0
    signal.signal(signal.SIGINT, interrupt)
    for attempt in range(int(sys.argv[2])):
        thread = threading.Thread(target=press, args=(attempt % 10 * 0.004, attempt % 4 * 0.0003))
        try:
            interrupt_a_launch(thread)
        except KeyboardInterrupt:
            launching.clear()
            outcomes.add("interrupted")
        thread.join()
        until = time.monotonic() + 2
        while living_ranks() and time.monotonic() < until:  # one that was just starting ends by its lifeline
            time.sleep(0.01)
        left += len(living_ranks())
    print(*outcomes, left)
"""


def test_interrupts_that_come_fast_one_after_another_leave_no_rank(method: str, tmp_path: Path) -> None:
    done = scripts.run(tmp_path, PRESSING, method, "8" if method == "spawn" else "16")
    assert done.stdout == "interrupted 0\n", done.stderr
    assert done.stderr == ""


HALTED_SERVER = """
    import os, signal, sys, threading, time
    import nbmp
    from nbmp.launching.methods import forkserver
    from tests.launching import functions

    def launch():
        try:
            print(nbmp.launch(functions.give, (1,), 2, start_method="forkserver"), flush=True)
        except (nbmp.StartError, KeyboardInterrupt) as error:
            print(type(error).__name__, error, flush=True)

    launch()
    server = forkserver.server_pid()
    os.kill(server, signal.SIGSTOP)
    launch()
    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
    launch()
    os.kill(server, signal.SIGCONT)
    launch()
    os.kill(server, signal.SIGSTOP)  # its end is not waited for either
"""


def test_halted_fork_server_delays_neither_error_nor_interrupt_nor_exit(tmp_path: Path) -> None:
    done = scripts.run(tmp_path, HALTED_SERVER)
    assert done.stderr == ""
    first, halted, interrupted, last = done.stdout.splitlines()
    assert halted.startswith("StartError the fork server (pid ")
    assert "is stopped by a signal and starts no rank" in halted
    assert interrupted.startswith("KeyboardInterrupt the ranks were stopped: the fork server (pid ")
    assert first == last == "[1, 1]"
