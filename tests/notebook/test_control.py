"""`%mpstack`, `%mpstatus`, `%mpstop`, help and tab completion, in a kernel."""

from __future__ import annotations

import re

import pytest

from tests.notebook.kernels import Cell, Kernel

pytestmark = pytest.mark.may_keep("children")  # the module's kernel, which keeps a fork server

MAGICS = ("mpspawn", "mpstack", "mpstatus", "mpstop")


@pytest.fixture
def launched(kernel: Kernel) -> str:
    """Two ranks that run, held by the variable `ctx`; return the number of the cell with their function."""
    defined = kernel.run(
        "import nbmp, os, time\n"
        "def work(rank):\n"
        "    print('ready')\n"
        "    while not os.path.exists('stop'):\n"
        "        time.sleep(0.01)\n"
        "if os.path.exists('stop'): os.unlink('stop')\n"
    )
    number = defined.of("execute_input")[0].content["execution_count"]
    return str(number)


def launch(kernel: Kernel, method: str, name: str = "ctx") -> None:
    cell = kernel.run(f"{name} = nbmp.start_processes(work, nprocs=2, join=False, start_method='{method}')")
    kernel.until(lambda: cell.text().count("ready") == 2, "both ranks run")


def end(kernel: Kernel) -> None:
    kernel.run("open('stop', 'w').close()\nctx.finished.wait()")


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_stacks_have_cell_numbers_and_source_lines(kernel: Kernel, launched: str, method: str) -> None:
    launch(kernel, method)
    text = kernel.run("%mpstack").text()
    kernel.run("%mpstop ctx")
    assert re.search(r"^rank 0 \(pid \d+\) running for \d+\.\d s$", text, re.MULTILINE)
    assert text.count(f"Cell In[{launched}], line 5, in work\n") == 2
    assert "---> 5         time.sleep(0.01)\n" in text
    assert "nbmp" not in text


def test_stacks_of_some_ranks_with_all_frames(kernel: Kernel, launched: str) -> None:
    launch(kernel, "fork")
    text = kernel.run("%mpstack ctx 1 --all").text()
    value = kernel.run("ctx.stacks()").value
    end(kernel)
    assert "rank 1" in text
    assert "rank 0" not in text
    assert "nbmp/launching" in text
    assert value is not None
    assert value.startswith("rank 0 (pid ")
    assert kernel.run("%mpstack ctx 0").text().endswith("has ended: done\n")
    assert kernel.run("%mpstack").text() == "no ranks run\n"


def test_the_table_shows_all_that_runs_by_the_names_of_variables(kernel: Kernel, launched: str) -> None:
    launch(kernel, "fork")
    kernel.run("pool = nbmp.Pool(1, start_method='fork')")
    head, *rows = kernel.run("%mpstatus").text().splitlines()
    assert head.split() == ["name", "rank", "pid", "state", "time", "CPU", "memory", "last", "line"]
    assert [row.split()[:3] for row in rows] == [
        ["ctx", "(fork)", "0"],
        ["ctx", "(fork)", "1"],
        ["pool", "(fork)", "0"],
    ]
    assert rows[0].endswith("ready")
    assert "waits for a task" in kernel.run("%mpstack pool").text()
    end(kernel)
    left = "no launch runs\npool: a pool, left alone (%mpstop pool ends it)\n"
    assert kernel.run("%mpstop").text() == left
    assert kernel.run("%mpstop pool").text() == "pool: the pool and its 1 workers have ended\n"
    assert kernel.run("%mpstatus").text() == "no ranks run\n"


def test_stopping_says_what_happened_in_one_line(kernel: Kernel, launched: str) -> None:
    launch(kernel, "fork")
    assert re.fullmatch(r"ctx: rank 1 ended \d\.\d s after SIGTERM\n", kernel.run("%mpstop ctx 1").text())
    assert "rank 1" in kernel.run("%mpstack ctx 1").text()
    assert kernel.run("[r.state for r in ctx.ranks]").value == "['running', 'stopped']"
    assert re.fullmatch(r"ctx: rank 0 ended \d\.\d s after SIGTERM\n", kernel.run("%mpstop").text())
    assert kernel.run("%mpstop").text() == "no launch runs\n"
    told = kernel.run("ctx.join()", fails=True).error
    assert "ProcessExitedException: ranks 0 and 1 of 2 were stopped by %mpstop\n" in told


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("%mpstack ctz", "there is no launch called 'ctz'; did you mean ctx?"),
        ("%mpstop ctx 7", "launch ctx has no rank 7: they are numbered 0 to 1"),
        ("%mpstop 1", "rank 1 of which launch? Write its name first: ctx or other"),
        ("%mpstack --al", "there is no option --al; did you mean --all?"),
        (
            "%mpstop --grace-period -1",
            "--grace-period needs a number of seconds, not '-1'",
        ),
        ("%mpstatus 3", "'3' belongs to no option"),
    ],
)
def test_what_is_wrong_is_named_in_one_line(kernel: Kernel, launched: str, line: str, message: str) -> None:
    launch(kernel, "fork")
    launch(kernel, "fork", "other")
    cell = kernel.run(line, fails=True)
    kernel.run("%mpstop")
    magic = line.split()[0]
    assert cell.error.strip() == f"UsageError: {magic}: {message} ({magic} --help lists the options)"


@pytest.mark.parametrize("name", MAGICS)
def test_every_magic_has_help_with_an_example(kernel: Kernel, name: str) -> None:
    for option in ("--help", "-h"):
        text = kernel.run(f"%{name} {option}").text()
        assert text.startswith(f"usage: {'%%' if name == 'mpspawn' else '%'}{name}")
        assert f"\n    {'%%' if name == 'mpspawn' else '%'}{name}" in text


def completed(kernel: Kernel, code: str) -> list[str]:
    return kernel.complete(code.replace("|", ""), code.index("|"))


def test_tab_completes_options_values_and_names(kernel: Kernel, launched: str) -> None:
    launch(kernel, "fork")
    try:
        assert completed(kernel, "%%mpspawn --st|\nbody") == ["--start-method"]
        assert completed(kernel, "%%mpspawn --start-method |\nbody") == ["fork", "forkserver", "spawn"]
        assert completed(kernel, "%%mpspawn -n 2 --start-method s|") == ["spawn"]
        assert completed(kernel, "%%mpspawn --b|\nbody") == ["--bg"]
        assert completed(kernel, "%%mpspawn -n 2 --bg --n|\nbody") == ["--name", "--no-monitor"]
        assert completed(kernel, "%mpstack --|") == ["--help", "--all", "--timeout"]
        assert completed(kernel, "%mpstop c|") == ["ctx"]
        assert completed(kernel, "%mpst|") == ["%mpstack", "%mpstatus", "%mpstop"]
        assert "time.sleep" in [f"time.{name}" for name in completed(kernel, "%%mpspawn\ntime.sle|")]
    finally:
        end(kernel)


def interrupted(kernel: Kernel, code: str, presses: int = 1) -> Cell:
    """Run a cell, press the stop button when both ranks have said that they are ready, and return the cell."""
    cell = kernel.start(code)
    kernel.until(lambda: cell.text().count("ready") == 2, "both ranks run")
    kernel.interrupt()
    if presses == 2:
        kernel.until(lambda: cell.text().count("asked") == 2, "both ranks were asked to end")
        kernel.interrupt()
    kernel.until(lambda: bool(cell.ended), "the cell is done")
    assert cell.status == "error"
    return cell


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_an_interrupt_is_told_in_one_line_and_shared_arrays_stay(kernel: Kernel, method: str) -> None:
    kernel.run("import nbmp\nshared = nbmp.zeros(3)")
    cell = interrupted(
        kernel, f"%%mpspawn -n 2 --start-method {method}\nimport time\nshared[rank] = 1\nprint('ready')\ntime.sleep(60)"
    )
    (error,) = cell.of("error")
    assert error.content["ename"] == "KeyboardInterrupt"
    pattern = r"KeyboardInterrupt: the ranks were stopped: ranks 0 and 1 ended \d\.\d s after SIGTERM"
    assert re.fullmatch(pattern, cell.error)
    assert kernel.run("shared.tolist(), nbmp.is_shared(shared)").value == "([1.0, 1.0, 0.0], True)"
    assert kernel.run(f"%%mpspawn -n 2 --start-method {method}\nfloat(shared[2]) + rank").value == "[0.0, 1.0]"


def test_a_second_interrupt_kills_and_the_users_lines_are_told(kernel: Kernel) -> None:
    kernel.run(
        "import nbmp, signal, time\n"
        "def stubborn(rank):\n"
        "    signal.signal(signal.SIGTERM, lambda *_: print('asked'))\n"
        "    print('ready')\n"
        "    while True:\n        time.sleep(60)"
    )
    cell = interrupted(kernel, "def train():\n    nbmp.launch(stubborn, nprocs=2)\ntrain()", presses=2)
    first, *places = cell.error.splitlines()
    assert first == ("KeyboardInterrupt: the ranks were stopped: ranks 0 and 1 did not end on SIGTERM and got SIGKILL")
    number = cell.of("execute_input")[0].content["execution_count"]
    assert places == [f"  in Cell In[{number}], line 2, in train", f"  in Cell In[{number}], line 3"]
    assert kernel.run("1 + 1").value == "2"


def test_variables_that_raise_when_they_are_looked_at_are_left_alone(fresh_kernel: Kernel) -> None:
    fresh_kernel.run(
        "%load_ext nbmp\nimport time\n"
        "class Proxy:\n    def __getattr__(self, name):\n        raise RuntimeError(name)\n"
        "    __class__ = property(lambda self: 1 / 0)\nproxy = Proxy()"
    )
    fresh_kernel.run("%%mpspawn -n 2 --bg --name run\ntime.sleep(60)")
    assert "run (fork)" in fresh_kernel.run("%mpstatus").text()
    assert "rank 0" in fresh_kernel.run("%mpstack run").text()
    assert not fresh_kernel.run("%mpshm --once").error
    assert "run: ranks 0 and 1" in fresh_kernel.run("%mpstop").text()
