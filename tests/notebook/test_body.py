"""The body of a `%%mpspawn` cell: what runs, with which names, and how it says where it failed."""

from __future__ import annotations

import pytest

from tests.notebook.kernels import Kernel

pytestmark = pytest.mark.may_keep("children")  # the module's kernel, which keeps a fork server


def mpspawn(method: str, body: str, ranks: int = 2) -> str:
    return f"%%mpspawn -n {ranks} --start-method {method}\n{body}"


def test_names_of_the_notebook_are_at_hand_through_functions_too(kernel: Kernel, method: str) -> None:
    kernel.run(
        "import math as m\nSCALE = 3\ndef helper(x):\n    return m.sqrt(x) * SCALE\n"
        "class Box:\n    def __init__(self, v):\n        self.v = helper(v)\n"
        "def deep(x):\n    return Box(x).v"
    )
    assert kernel.run(mpspawn(method, "deep(4 * rank)")).value == "[0.0, 6.0]"


def test_functions_of_the_notebook_see_what_the_body_assigns(kernel: Kernel, method: str) -> None:
    kernel.run("def read():\n    return level + rank")
    assert kernel.run(mpspawn(method, "level = 10\nread()")).value == "[10, 11]"


def test_the_notebook_keeps_its_own_values(kernel: Kernel, method: str) -> None:
    kernel.run("mine = [1]")
    assert kernel.run(mpspawn(method, "mine.append(rank)\nmine")).value == "[[1, 0], [1, 1]]"
    assert kernel.run("mine, 'rank' in globals()").value == "([1], False)"


def test_functions_and_classes_of_the_body_work(kernel: Kernel, method: str) -> None:
    body = "from dataclasses import dataclass\n@dataclass\nclass P:\n    x: int\ndef f():\n    return P(rank).x\nf()"
    assert kernel.run(mpspawn(method, body)).value == "[0, 1]"


def test_top_level_await(kernel: Kernel, method: str) -> None:
    body = (
        "import asyncio\nasync def one():\n    await asyncio.sleep(0.01)\n    return rank\n"
        "first = await one()\nfirst + await one()"
    )
    assert kernel.run(mpspawn(method, body)).value == "[0, 2]"


def test_asyncio_run_in_a_rank(kernel: Kernel, method: str) -> None:
    body = "import asyncio\nasync def one():\n    return rank\nasyncio.run(one())"
    assert kernel.run(mpspawn(method, body)).value == "[0, 1]"


def test_magics_and_shell_commands(kernel: Kernel, method: str) -> None:
    kernel.run("word = 'hello'\ndef shout():\n    return word.upper()")
    body = "!echo {word} from $rank\nlisted = !echo a; echo b\n%timeit -n1 -r1 shout()\nlist(listed), word"
    cell = kernel.run(mpspawn(method, body))
    assert cell.value == "[(['a', 'b'], 'hello'), (['a', 'b'], 'hello')]"
    assert "[0] hello from 0" in cell.text()
    assert "[1] hello from 1" in cell.text()
    assert cell.text().count("per loop") == 2


def test_a_cell_magic_in_the_body(kernel: Kernel, method: str) -> None:
    cell = kernel.run(mpspawn(method, "%%time\nprint('timed', rank)"))
    assert "[1] timed 1" in cell.text()
    assert cell.text().count("Wall time") == 2


def test_get_ipython_and_its_namespace(kernel: Kernel, method: str) -> None:
    kernel.run("shared_name = 5")
    body = "%who_ls\nget_ipython().user_ns['shared_name'] + rank + 0 * shared_name"
    assert kernel.run(mpspawn(method, body)).value == "[5, 6]"


def test_a_function_that_mentions_ipython_travels(kernel: Kernel, method: str) -> None:
    kernel.run("def work():\n    return get_ipython().getoutput('echo out')[0]\ndef stop():\n    exit(0)")
    assert kernel.run(mpspawn(method, "work()")).value == "['out', 'out']"
    assert kernel.run(mpspawn(method, "if rank:\n    stop()\nprint('still here', rank)")).text() == (
        "[0] still here 0\n"
    )


def test_a_rank_imports_ipython_only_for_a_body_that_needs_it(kernel: Kernel) -> None:
    body = "import sys\nexit, open, quit\n[m for m in ('IPython', 'ipywidgets') if m in sys.modules]"
    assert kernel.run(mpspawn("spawn", body)).value == "[[], []]"
    assert kernel.run(mpspawn("spawn", f"get_ipython\n{body}")).value == "[['IPython'], ['IPython']]"


def test_a_name_that_cannot_travel_is_named_and_nothing_starts(kernel: Kernel) -> None:
    kernel.run("import threading\nclass Model:\n    def __init__(self):\n        self.lock = threading.Lock()")
    kernel.run("model = Model()\ndef uses_it():\n    return model")
    for method in ("spawn", "forkserver"):
        cell = kernel.run(mpspawn(method, "print('started')\nmodel"), fails=True)
        assert cell.error.startswith("UsageError: %%mpspawn: model.lock cannot travel"), cell.error
        assert len(cell.error.strip().splitlines()) == 1
        cell = kernel.run(mpspawn(method, "uses_it()"), fails=True)
        assert "uses_it -> model.lock" in cell.error
        assert "started" not in cell.text()
        assert not cell.of("display_data")
    assert kernel.run(mpspawn("fork", "type(model).__name__")).value == "['Model', 'Model']"


def test_a_name_that_the_body_assigns_itself_may_stay_at_home(kernel: Kernel) -> None:
    kernel.run("import threading\nitem = threading.Lock()")
    assert kernel.run(mpspawn("spawn", "item = 3\nitem + rank")).value == "[3, 4]"


def test_a_syntax_error_is_shown_as_one_with_the_line_of_the_cell(kernel: Kernel) -> None:
    cell = kernel.run("%%mpspawn -n 2\n\nx = 1\ny = = 2", fails=True)
    assert "SyntaxError" in cell.error
    assert "line 4" in cell.error
    assert "y = = 2" in cell.error
    assert "nbmp" not in cell.error
    assert not cell.of("display_data")


def test_a_syntax_error_of_the_compiler_has_its_line(kernel: Kernel) -> None:
    cell = kernel.run("%%mpspawn -n 2\nx = 1\nreturn x", fails=True)
    assert "'return' outside function: the last expression is the result of a rank" in cell.error
    assert "SyntaxError" in cell.error
    assert "line 3" in cell.error


def test_an_error_names_cell_and_line_as_typed(kernel: Kernel, method: str) -> None:
    body = "\nstart = rank\nif rank == 1:\n    raise ValueError('shapes do not match')\nstart"
    cell = kernel.run(mpspawn(method, body), fails=True)
    number = kernel.run("len(In) - 2").value
    assert f"Cell In[{number}], line 5" in cell.error
    assert "raise ValueError('shapes do not match')" in cell.error
    assert "ValueError" in cell.error
    assert "rank 1" in cell.error
    assert "nbmp/" not in cell.error


def test_an_error_in_a_function_of_another_cell_names_both(kernel: Kernel, method: str) -> None:
    kernel.run("def divide(x):\n    return 1 / x")
    first = int(kernel.run("len(In) - 2").value or 0)
    cell = kernel.run(mpspawn(method, "divide(rank)"), fails=True)
    second = int(kernel.run("len(In) - 2").value or 0)
    assert f"Cell In[{first}], line 2" in cell.error
    assert f"Cell In[{second}], line 2" in cell.error


def test_a_magic_called_by_code_has_lines_of_its_own(kernel: Kernel) -> None:
    cell = kernel.run("get_ipython().run_cell_magic('mpspawn', '-n 1', 'a = 1\\n1 / 0')", fails=True)
    assert "line 2" in cell.error
    assert kernel.run("get_ipython().run_cell_magic('mpspawn', '-n 1', 'rank')").value == "[0]"


@pytest.mark.parametrize("text", ["%%time\n%%mpspawn -n 2\nrank + 1", "%%capture said\n%%mpspawn -n 2\nprint(rank)"])
def test_under_another_cell_magic(kernel: Kernel, text: str) -> None:
    kernel.run(text)
    if "capture" in text:
        assert kernel.run("sorted(said.stdout.splitlines())").value == "['[0] 0', '[1] 1']"
