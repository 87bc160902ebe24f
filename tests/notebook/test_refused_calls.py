"""A call that nbmp refuses shows the user's line and what is wrong, and nothing of nbmp's inside."""

from __future__ import annotations

import re

import pytest

from tests.notebook.kernels import Kernel

pytestmark = pytest.mark.may_keep("children")  # the module's kernel, which keeps a fork server

REFUSED = {
    "mp.launch(print, 3)": "TypeError: args must be a tuple",
    "mp.zeros(10**13)": "SharedMemoryError: 80000000000000 bytes",
    "mp.Queue().put({'a': [threading.Lock()]})": "CannotTravelError: object['a'][0] cannot travel",
    "mp.start_processes(print, gpus=[])": "ValueError: gpus is 'all' or a list",
}


@pytest.mark.parametrize("call", REFUSED)
def test_only_the_line_of_the_user_is_shown(kernel: Kernel, call: str) -> None:
    kernel.run("import threading, nbmp as mp")
    told = kernel.run(f"1\n{call}", fails=True).error
    assert REFUSED[call] in told
    assert "----> 2 " + call in told
    assert len(re.findall("^-+> [0-9]", told, re.MULTILINE)) == 1  # one frame, and it is the user's
    assert "nbmp/" not in told
    assert told.count("Traceback") == 1


def test_frames_of_the_users_own_code_stay_and_so_does_what_nbmp_calls(kernel: Kernel) -> None:
    kernel.run("class Stuck:\n    def __reduce__(self):\n        raise ValueError('the reason')")
    told = kernel.run("mp.Queue().put(Stuck())", fails=True).error
    assert "__reduce__(self)" in told
    assert "direct cause" in told


def test_tab_tells_what_the_names_are(kernel: Kernel) -> None:
    kernel.run("import nbmp as mp\nget_ipython().Completer.jedi_compute_type_timeout = 60_000  # ms, on a busy machine")
    kinds = (
        "from IPython.core.completer import provisionalcompleter\n"
        "with provisionalcompleter():\n"
        "    kinds = {one.text: one.type for one in get_ipython().Completer.completions('mp.', 3)}\n"
        "kinds['launch'], kinds['Pool'], kinds['cuda'], 'Any' in kinds, 'suppress' in kinds"
    )
    assert kernel.run(kinds).value == "('function', 'class', 'module', False, False)"
