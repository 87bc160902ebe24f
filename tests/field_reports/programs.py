"""A report's program, run in an interpreter of its own with the names that the reports use."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

from tests import scripts
from tests.field_reports.conftest import MUST_RAISE

PRELUDE = """
    import gc, os, resource, signal, sys, threading, time
    import numpy as np
    import nbmp as mp
    from nbmp.memory.session import own_session
    def spawn(fn, args=(), nprocs=1, join=True):
        return mp.start_processes(fn, args=args, nprocs=nprocs, join=join, start_method=sys.argv[1])
    mp.set_sharing_strategy(sys.argv[2])
    def shm():  # names of segments in this session
        if sys.argv[2] == 'file_descriptor': return set()
        return {name for name in os.listdir(f'/dev/shm/{own_session().name}') if name[0].isdigit()}
    def fds(): return len(os.listdir('/proc/self/fd'))
    def soon(condition, seconds=10):
        end = time.time() + seconds
        while not condition() and time.time() < end:
            mp.trim(); gc.collect(); time.sleep(0.02)
        return condition()
""" + textwrap.indent(MUST_RAISE, "    ")


def check(folder: Path, report: str, *arguments: str, before: Any = ()) -> None:
    done = scripts.run(folder, PRELUDE + report + "    print('good')\n", *arguments, before=before)
    assert (done.returncode, done.stdout) == (0, "good\n"), done.stderr
    assert "resource_tracker" not in done.stderr
    assert "leaked" not in done.stderr
    assert "Exception ignored" not in done.stderr
