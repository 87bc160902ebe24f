"""Programs of a user with single processes: no guard, and what becomes of processes at exit and on interrupts."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from tests import scripts
from tests.waiting import content, is_running, until


def test_script_without_a_guard_has_processes_queues_and_managers(method: str, tmp_path: Path) -> None:
    source = """
        import sys, nbmp as mp
        print("once")
        mp.set_start_method(sys.argv[1])

        def work(queue, shared):
            shared["name"] = mp.current_process().name
            queue.put(mp.get_start_method())

        queue, manager = mp.Queue(), mp.Manager()
        shared = manager.dict()
        process = mp.Process(target=work, args=(queue, shared))
        process.start()
        print(queue.get(), process.join(), process.exitcode, shared)
    """
    assert scripts.output(tmp_path, source, method) == f"once\n{method} None 0 {{'name': 'Process-2'}}\n"


def test_processes_are_waited_for_at_exit_and_daemons_stopped(method: str, tmp_path: Path) -> None:
    source = """
        import sys, time, nbmp as mp
        context = mp.get_context(sys.argv[1])

        def late(seconds):
            time.sleep(seconds)
            print("done")

        context.Process(target=late, args=(0.5,)).start()
        context.Process(target=late, args=(100,), daemon=True).start()
    """
    done = scripts.run(tmp_path, source, method)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith("Process-1] done\n")
    assert done.stdout.count("\n") == 1


def test_failure_that_nobody_joined_is_said_at_exit(method: str, tmp_path: Path) -> None:
    source = """
        import os, signal, sys, time, nbmp as mp
        context = mp.get_context(sys.argv[1])

        def fail(rank=0):
            raise ValueError("too bad")

        def end(rank=0):
            os.kill(os.getpid(), signal.SIGKILL)

        context.Process(target=end, name="killed").start()
        joined = context.Process(target=end, name="joined")
        joined.start()
        joined.join()
        stopped = context.Process(target=time.sleep, args=(100,), name="stopped")
        stopped.start()
        stopped.terminate()
        mp.start_processes(fail, nprocs=2, join=False, start_method=sys.argv[1])
        try:
            mp.start_processes(fail, nprocs=2, start_method=sys.argv[1])
        except mp.ProcessRaisedException:
            pass
    """
    done = scripts.run(tmp_path, source, method)
    lines = sorted(line for line in done.stderr.splitlines() if line.startswith("nbmp:"))
    assert len(lines) == 2, done.stderr
    assert lines[0].startswith("nbmp: killed (pid ")
    assert lines[0].endswith(") failed and was never joined: signal SIGKILL")
    assert lines[1].startswith("nbmp: rank ")
    assert lines[1].endswith(") failed and its launch was never joined: ValueError: too bad")


def test_interrupt_while_joining_reaches_the_processes(method: str, tmp_path: Path) -> None:
    source = """
        import os, sys, time, nbmp as mp
        from tests.processes import functions
        method, folder = sys.argv[1:]
        started = [
            mp.get_context(method).Process(
                target=functions.interrupted, args=(f"{folder}/ready{n}", f"{folder}/told{n}"), name=f"p{n}"
            )
            for n in range(2)
        ]
        for process in started:
            process.start()
        for n in range(2):
            functions.seen_at(f"{folder}/ready{n}")
        functions.tell(f"{folder}/joining", os.getpid())
        try:
            started[0].join()
        except KeyboardInterrupt:
            for process in started:
                process.join()
            print([process.exitcode for process in started])
    """
    with scripts.started(tmp_path, source, method, str(tmp_path)) as process:
        pid = int(content(tmp_path / "joining"))
        everyone = [pid, *(int(content(tmp_path / f"ready{number}")) for number in range(2))]
        # an interrupt just before a process falls asleep is not seen before it wakes up: Python's own
        assert until(lambda: all(map(_sleeps, everyone)))
        os.kill(pid, signal.SIGINT)
        out, err = process.communicate(timeout=scripts.SECONDS)
    assert out == "[1, 1]\n", err
    assert err.count("KeyboardInterrupt") == 2
    assert [(tmp_path / f"told{n}").read_text() for n in range(2)] == ["interrupted"] * 2


def _sleeps(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "S"


def test_processes_end_with_the_program_that_is_killed(method: str, tmp_path: Path) -> None:
    source = """
        import sys, time, nbmp as mp
        from tests.processes import functions
        method, folder = sys.argv[1:]
        context = mp.get_context(method)
        context.Process(target=functions.ready_and_wait, args=(f"{folder}/pid",), kwargs={"deaf": True}).start()
        time.sleep(100)
    """
    with scripts.started(tmp_path, source, method, str(tmp_path)) as process:
        pid = int(content(tmp_path / "pid"))
        process.kill()
        assert until(lambda: not is_running(pid))


def test_pool_of_the_standard_library_in_a_rank_finds_functions_of_main(method: str, tmp_path: Path) -> None:
    source = """
        import sys, multiprocessing, nbmp

        def square(x):
            return x * offset

        offset = 3

        def use_a_pool(rank):
            with multiprocessing.get_context("fork").Pool(2) as pool:
                return pool.map(square, range(4))

        print(nbmp.launch(use_a_pool, start_method=sys.argv[1]))
    """
    assert scripts.output(tmp_path, source, method) == "[[0, 3, 6, 9]]\n"


def test_names_of_semaphores_end_with_the_process_that_made_them_however_it_ends(method: str, tmp_path: Path) -> None:
    source = """
        import os, sys, nbmp
        from tests.processes import functions
        from tests.waiting import until

        def make(told):
            lock = nbmp.Lock()
            told.put(lock._semlock.name)
            functions.wait_long()

        told = nbmp.SimpleQueue()
        process = nbmp.get_context(sys.argv[1]).Process(target=make, args=(told,))
        process.start()
        path = "/dev/shm/sem." + told.get().removeprefix("/")
        print(os.path.exists(path))
        process.kill()
        print(until(lambda: not os.path.exists(path)))
    """
    assert scripts.output(tmp_path, source, method) == "True\nTrue\n"


def test_python_warns_at_exit_of_nothing_that_a_lock_has_started(tmp_path: Path) -> None:
    done = scripts.run(tmp_path, "import nbmp; lock = nbmp.Lock()", env={"PYTHONDEVMODE": "1"})
    assert (done.returncode, done.stderr) == (0, "")
