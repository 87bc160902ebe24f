"""What the README says of nbmp and of its peers, asked of each of them: `python3 dev.py compare`.

A question is a short program for each library that prints yes or no. It runs as in a notebook: its functions are in no
file (`python -`). One that has not answered in time counts as no: it hangs. The answers are compared with the README's
table, row by row, where a cell begins with yes or no.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 40
COLUMNS = ("nbmp", "torch", "multiprocessing", "ipyparallel", "joblib")

PRELUDES = {
    "nbmp": "import nbmp as mp",
    "torch": "import torch, torch.multiprocessing as mp",
    "multiprocessing": "import multiprocessing as mp",
    "ipyparallel": """
        import ipyparallel as ipp
        cluster = ipp.Cluster(n=2, log_level=40)
        view = cluster.start_and_connect_sync().broadcast_view()
        ids = view.client.ids
        pids = view.apply_sync(os.getpid)
        def each(function, *arguments):
            return [view.client[number].apply(function, rank, *arguments) for rank, number in enumerate(ids)]
    """,
    "joblib": "from joblib import Parallel, delayed",
}
"""Before each program, and `import os, time, numpy as np`."""

ENDING = "os._exit(0)"
"""Its last line: no library is waited for."""

QUESTIONS: dict[str, dict[str, str]] = {
    "a function of a cell, in a new interpreter": {
        "nbmp": "print(mp.launch(lambda rank: rank, nprocs=2, start_method='spawn') == [0, 1])",
        "torch": """
            def f(rank): open(f"here{rank}", "w")
            try: mp.spawn(f, nprocs=2)
            except Exception: pass
            print(os.path.exists("here1"))
        """,
        "multiprocessing": """
            def f(rank): open(f"here{rank}", "w")
            process = mp.get_context("spawn").Process(target=f, args=(1,))
            process.start(); process.join()
            print(os.path.exists("here1"))
        """,
        "ipyparallel": "print([answer.get() for answer in each(lambda rank: rank)] == [0, 1])",
        "joblib": "print(Parallel(2)(delayed(lambda rank: rank)(rank) for rank in range(2)) == [0, 1])",
    },
    "NumPy arrays written to by all": {
        "nbmp": """
            a = mp.zeros(1_000_000)
            def f(rank, a): a[rank] = 1
            mp.launch(f, (a,), nprocs=2)
            print(a.sum() == 2)
        """,
        "torch": """
            a = np.zeros(1_000_000)
            def f(rank, a): a[rank] = 1
            mp.start_processes(f, (a,), nprocs=2, start_method="fork")
            print(a.sum() == 2)
        """,
        "multiprocessing": """
            a = np.zeros(1_000_000)
            def f(rank, a): a[rank] = 1
            ranks = [mp.Process(target=f, args=(rank, a)) for rank in range(2)]
            for rank in ranks: rank.start()
            for rank in ranks: rank.join()
            print(a.sum() == 2)
        """,
        "ipyparallel": """
            a = np.zeros(1_000_000)
            def f(rank, a): a[rank] = 1
            for answer in each(f, a):
                try: answer.get()
                except Exception as error: pass
            print(a.sum() == 2)
        """,
        "joblib": """
            a = np.zeros(1_000_000)
            def f(rank, a): a[rank] = 1
            try: Parallel(2)(delayed(f)(rank, a) for rank in range(2))
            except Exception: pass
            print(a.sum() == 2)
        """,
    },
    "every rank's result comes back": {
        "nbmp": "print(mp.launch(lambda rank: 2 * rank, nprocs=2) == [0, 2])",
        "torch": """
            def f(rank): return 2 * rank
            print(mp.start_processes(f, nprocs=2, start_method="fork") == [0, 2])
        """,
        "multiprocessing": """
            def f(rank): return 2 * rank
            print(mp.Pool(2).map(f, range(2)) == [0, 2])
        """,
        "ipyparallel": "print([answer.get() for answer in each(lambda rank: 2 * rank)] == [0, 2])",
        "joblib": "print(Parallel(2)(delayed(lambda rank: 2 * rank)(rank) for rank in range(2)) == [0, 2])",
    },
    "one raises: the others are stopped": {
        "nbmp": """
            def f(rank):
                if rank == 1: raise ValueError
                time.sleep(4); open("went on", "w")
            try: mp.launch(f, nprocs=2)
            except Exception: pass
            time.sleep(6); print(not os.path.exists("went on"))
        """,
        "torch": """
            def f(rank):
                if rank == 1: raise ValueError
                time.sleep(4); open("went on", "w")
            try: mp.start_processes(f, nprocs=2, start_method="fork")
            except Exception: pass
            time.sleep(6); print(not os.path.exists("went on"))
        """,
        "multiprocessing": """
            def f(rank):
                if rank == 1: raise ValueError
                time.sleep(4); open("went on", "w")
            pool = mp.Pool(2)
            try: pool.map(f, range(2), 1)
            except Exception: pass
            time.sleep(6); print(not os.path.exists("went on"))
        """,
        "ipyparallel": """
            def f(rank, folder):
                import time
                if rank == 1: raise ValueError
                time.sleep(4); open(folder + "/went on", "w")
            try:
                for answer in each(f, os.getcwd())[::-1]: answer.get()
            except Exception: pass
            time.sleep(6); print(not os.path.exists("went on"))
        """,
        "joblib": """
            def f(rank):
                if rank == 1: raise ValueError
                time.sleep(4); open("went on", "w")
            try: Parallel(2)(delayed(f)(rank) for rank in range(2))
            except Exception: pass
            time.sleep(6); print(not os.path.exists("went on"))
        """,
    },
    "the error says which one failed": {
        "nbmp": """
            try: mp.launch(lambda rank: 1 / (1 - rank), nprocs=2)
            except Exception as error: print(error.error_index == 1)
        """,
        "torch": """
            def f(rank): 1 / (1 - rank)
            try: mp.start_processes(f, nprocs=2, start_method="fork")
            except Exception as error: print(error.error_index == 1)
        """,
        "multiprocessing": """
            def f(rank): 1 / (1 - rank)
            try: mp.Pool(2).map(f, range(2), 1)
            except Exception as error: print("1" in str(error))
        """,
        "ipyparallel": """
            def f(): import os; 1 / (pid - os.getpid())
            view.push({"pid": pids[1]}, block=True)
            try: view.apply_sync(f)
            except Exception as error: print("[1:apply]" in str(error))
        """,
        "joblib": """
            try: Parallel(2)(delayed(lambda rank: 1 / (1 - rank))(rank) for rank in range(2))
            except Exception as error: print("1" in str(error))
        """,
    },
    "one is killed: the call ends, with an error": {
        "nbmp": """
            try: mp.launch(lambda rank: rank and os.kill(os.getpid(), 9) or time.sleep(2), nprocs=2)
            except Exception as error: print("SIGKILL" in str(error))
        """,
        "torch": """
            def f(rank): rank and os.kill(os.getpid(), 9); time.sleep(2)
            try: mp.start_processes(f, nprocs=2, start_method="fork")
            except Exception as error: print("SIGKILL" in str(error))
        """,
        "multiprocessing": """
            def f(rank): rank and os.kill(os.getpid(), 9); time.sleep(2)
            try: mp.Pool(2).map(f, range(2), 1)
            except Exception as error: print(True)
        """,
        "ipyparallel": """
            def f(rank):
                import os, time
                rank and os.kill(os.getpid(), 9); time.sleep(2)
            try:
                for answer in each(f): answer.get()
            except Exception as error: print("died" in str(error))
        """,
        "joblib": """
            try: Parallel(2)(delayed(lambda r: r and os.kill(os.getpid(), 9) or time.sleep(2))(r) for r in range(2))
            except Exception as error: print("SIGKILL" in str(error))
        """,
    },
}

WAITING = "open(f'pid{os.getpid()}', 'w'); time.sleep(60)"
SURVIVORS: dict[str, str] = {
    "nbmp": f"""
        def f(rank): {WAITING}
        mp.launch(f, nprocs=2)
    """,
    "torch": f"""
        def f(rank): {WAITING}
        mp.start_processes(f, nprocs=2, start_method="fork")
    """,
    "multiprocessing": f"""
        def f(rank): {WAITING}
        mp.Pool(2).map(f, range(2), 1)
    """,
    "ipyparallel": """
        for pid in pids: open(f"pid{pid}", "w")
        time.sleep(60)
    """,
    "joblib": f"""
        def f(rank): {WAITING}
        Parallel(2)(delayed(f)(rank) for rank in range(2))
    """,
}
"""Programs that are killed as soon as two processes have told their number: do these end?"""
KILLED = "the notebook is killed: its processes end"


def main() -> int:
    names = {name: name if name == "multiprocessing" else f"{name} {version(name)}" for name in COLUMNS}
    names["multiprocessing"] += f" of Python {sys.version.split()[0]}"
    print(", ".join(names.values()), flush=True)
    said, wrong = table_of_the_readme(), 0
    for question in (*QUESTIONS, KILLED):
        answers = [survive(name) if question == KILLED else ask(question, name) for name in COLUMNS]
        print(f"{question:48s}", " ".join(f"{name} {yes_or_no(a)}" for name, a in zip(COLUMNS, answers, strict=True)))
        for name, answer, cell in zip(COLUMNS, answers, said.get(question, ()), strict=False):
            if cell.startswith(("yes", "no")) and not cell.startswith(yes_or_no(answer)):
                print(f"    the README says of {name}: {cell}")
                wrong += 1
    missing = {*QUESTIONS, KILLED} - said.keys()
    print(f"{wrong} cells of the README's table are wrong, {len(missing)} rows are missing: {sorted(missing)}")
    return bool(wrong or missing)


def table_of_the_readme() -> dict[str, list[str]]:
    rows = re.findall(r"^\|(.*)\|$", (ROOT / "README.md").read_text(), re.MULTILINE)
    cells = [[cell.strip() for cell in row.split("|")] for row in rows]
    return {first: rest for first, *rest in cells if len(rest) == len(COLUMNS)}


def yes_or_no(answer: bool) -> str:
    return "yes" if answer else "no"


def program(name: str, body: str) -> str:
    return "\n".join(["import os, sys, time, numpy as np", textwrap.dedent(PRELUDES[name]), textwrap.dedent(body)])


def ask(question: str, name: str) -> bool:
    """Return whether the library's program printed True."""
    with tempfile.TemporaryDirectory() as folder, Program(name, QUESTIONS[question][name], folder) as asked:
        try:
            asked.process.wait(SECONDS)
        except subprocess.TimeoutExpired:
            return False
        return "True" in asked.shown()


def survive(name: str) -> bool:
    """Kill a program while its two processes are at work; return whether they end as well."""
    with tempfile.TemporaryDirectory() as folder, Program(name, SURVIVORS[name], folder) as asked:
        deadline = time.monotonic() + SECONDS
        while len(told := list(Path(folder).glob("pid*"))) < 2:
            if time.monotonic() > deadline:
                raise TimeoutError(f"{name}: its processes do not start: {asked.shown()}")
            time.sleep(0.1)
        asked.process.kill()
        asked.process.wait()
        time.sleep(10)
        return not {int(path.name[3:]) for path in told} & set(asked.processes())


class Program:
    """A running program. When it is left, all that it started is killed, wherever that went."""

    def __init__(self, name: str, body: str, folder: str) -> None:
        self.mark = f"NBMP_COMPARE={folder}"
        self.output = Path(folder, "output")
        variables = {**os.environ, "NBMP_COMPARE": folder, "IPYTHONDIR": f"{folder}/ipython"}
        with self.output.open("w") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-u", "-"],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=output,
                cwd=folder,
                env=variables,
            )
        assert self.process.stdin is not None
        self.process.stdin.write(program(name, f"{textwrap.dedent(body)}\n{ENDING}\n").encode())
        self.process.stdin.close()

    def __enter__(self) -> Program:
        return self

    def __exit__(self, *_: object) -> None:
        while left := self.processes():
            for pid in left:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            self.process.poll()
            time.sleep(0.1)
        self.process.wait()

    def shown(self) -> str:
        return self.output.read_text()

    def processes(self) -> list[int]:
        """Return those that have this program's mark in their environment."""
        found = []
        for environment in Path("/proc").glob("[0-9]*/environ"):
            with suppress(OSError):
                if self.mark.encode() in environment.read_bytes().split(b"\0"):
                    found.append(int(environment.parent.name))
        return found


if __name__ == "__main__":
    sys.exit(main())
