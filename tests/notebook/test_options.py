"""`%%mpspawn`'s line: what it takes, and one clear line about what it does not take."""

from __future__ import annotations

import pytest

from tests.notebook.kernels import Kernel

pytestmark = pytest.mark.may_keep("children")  # the module's kernel, which keeps a fork server

WRONG = [
    ("-n 0", "pass", "-n needs a whole number of at least 1, not '0'"),
    ("-n x", "pass", "-n needs a whole number of at least 1, not 'x'; for the value of a variable write {x}"),
    ("-n {x}", "pass", "-n needs a whole number of at least 1, not '{x}', which has no value: is that name defined?"),
    ("-n $x", "pass", "-n needs a whole number of at least 1, not '$x', which has no value: is that name defined?"),
    ("-n", "pass", "-n needs a value"),
    ("--start-metod spawn", "pass", "there is no option --start-metod; did you mean --start-method?"),
    ("--start-method spwan", "pass", "--start-method is fork, forkserver or spawn, not 'spwan'; did you mean spawn?"),
    ("--start-method threads", "pass", "--start-method is fork, forkserver or spawn, not 'threads'"),
    ("--out 2nd", "pass", "--out needs a variable name, not '2nd'"),
    ("--name ctx --out ctx", "pass", "--name and --out are two things: they cannot both be ctx"),
    ("--name 2nd", "pass", "--name needs a variable name, not '2nd'"),
    ("--background", "pass", "there is no option --background"),
    ("--out class", "pass", "--out needs a variable name, not 'class'"),
    ("--timeout soon", "pass", "--timeout needs a number of seconds, not 'soon'"),
    ("--grace-period -1", "pass", "--grace-period needs a number of seconds, not '-1'"),
    ("--threads none", "pass", "--threads needs a whole number of at least 1, not 'none'"),
    ("--env HOME", "pass", "--env needs NAME=VALUE, not 'HOME'"),
    ("--nprocs 4", "pass", "there is no option --nprocs; for the number of ranks write -n"),
    ("-n 2 # two ranks", "pass", "a comment stands on a line of its own, in the body"),
    ("--fast", "pass", "there is no option --fast"),
    ("--foo", "pass", "there is no option --foo (%"),
    ("4", "pass", "'4' belongs to no option; for 4 ranks write -n 4"),
    ("--out 'a", "pass", "No closing quotation"),
    ("-n 2", "", "the cell has no body: nothing to run"),
    ("-n 2", "\n\n  \n", "the cell has no body: nothing to run"),
    ("-n 2", "# only a comment", "the cell has no body: nothing to run"),
]


@pytest.mark.parametrize(("line", "body", "message"), WRONG)
def test_what_is_wrong_is_named_in_one_line(kernel: Kernel, line: str, body: str, message: str) -> None:
    cell = kernel.run(f"%%mpspawn {line}" + (f"\n{body}" if body else ""), fails=True)
    assert f"UsageError: %%mpspawn: {message}" in cell.error
    assert len(cell.error.strip().splitlines()) == 1
    assert not cell.of("display_data"), "a table was shown: something was started"


@pytest.mark.parametrize("text", ["%%mpspawn --help", "\n%%mpspawn --help\n", "%mpspawn --help", "%%mpspawn --help\n1"])
def test_help_lists_every_option_and_starts_nothing(kernel: Kernel, text: str) -> None:
    cell = kernel.run(text)
    for option in ("-n N", "--start-method", "--bg", "--name", "--out", "--timeout", "--grace-period", "--env"):
        assert option in cell.text()
    assert "stays in its rank, but for shared arrays" in cell.text()
    assert "np.random.default_rng([seed, rank])" in cell.text()
    assert not cell.of("display_data")


def test_the_line_magic_points_to_the_cell_magic(kernel: Kernel) -> None:
    assert "write %%mpspawn (two %) on top of the cell" in kernel.run("%mpspawn -n 2", fails=True).error


def test_options_reach_the_ranks(kernel: Kernel) -> None:
    kernel.run("workers = 2")
    cell = kernel.run(
        "%%mpspawn -n {workers} --start-method spawn --threads 3 --env A=1 --env 'B=x y' --timeout 60\n"
        "import os\nfrom multiprocessing import get_start_method\n"
        "rank, world_size, os.environ['OMP_NUM_THREADS'], os.environ['A'], os.environ['B']"
    )
    assert cell.value == "[(0, 2, '3', '1', 'x y'), (1, 2, '3', '1', 'x y')]"


def test_the_default_number_of_ranks_is_the_number_of_cores(kernel: Kernel) -> None:
    cell = kernel.run("%%mpspawn --out several\nworld_size")
    assert cell.value == kernel.run("from nbmp.platforms import cpu_count\n[cpu_count()] * cpu_count()").value


def test_time_that_is_up_stops_the_ranks(kernel: Kernel) -> None:
    cell = kernel.run("%%mpspawn -n 2 --timeout 0.5 --grace-period 0.5\nimport time\ntime.sleep(60)", fails=True)
    assert "LaunchTimeoutError: ranks 0 and 1 of 2 still ran after 0.5 s and were stopped" in cell.error
    lines = cell.error.splitlines()[1:]
    # both at one place, unless one was asked before it had come there
    assert [line.partition(": ")[0] for line in lines] in (["  ranks 0 and 1"], ["  rank 0", "  rank 1"])
    assert cell.ended - cell.started < 15


@pytest.mark.parametrize(
    ("body", "shown"),
    [
        ("rank", "[0, 1]"),
        ("rank;", None),
        ("rank;  # quiet", None),
        ("x = rank", None),
        ("None", None),
        ("print('hi')", None),
        ("None if rank else 'only rank 0'", "['only rank 0', None]"),
    ],
)
def test_the_value_is_the_last_expression_of_each_rank(kernel: Kernel, body: str, shown: str | None) -> None:
    cell = kernel.run(f"%%mpspawn -n 2 --out found\n{body}")
    assert cell.value == shown


def test_out_is_bound_also_when_nothing_is_shown(kernel: Kernel) -> None:
    kernel.run("%%mpspawn -n 2 --out squares\nrank ** 2 + 1;")
    assert kernel.run("squares").value == "[1, 2]"


def test_out_keeps_its_old_value_when_a_rank_fails(kernel: Kernel) -> None:
    kernel.run("kept = 'before'")
    kernel.run("%%mpspawn -n 2 --out kept\n1 / 0", fails=True)
    assert kernel.run("kept").value == "'before'"
