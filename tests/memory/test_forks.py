"""A fork while another thread is inside this package's memory: the child must not wait for that thread's locks."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import scripts

HOLDS = {
    "mappings": "from nbmp.memory import mappings; lock = mappings._lock",
    "recycler": "from nbmp.memory.recycler import recycler; lock = recycler._lock",
    "session": "from nbmp.memory import session; lock = session._lock",
    "arena": "from nbmp.memory import arrays; lock = arrays._arena._lock",
}


@pytest.mark.parametrize("module", HOLDS)
def test_child_does_not_wait_for_a_lock_that_another_thread_held(module: str, strategy: str, tmp_path: Path) -> None:
    told = scripts.output(
        tmp_path,
        f"""
        import os, signal, threading, nbmp
        nbmp.set_sharing_strategy({strategy!r})
        {HOLDS[module]}
        from nbmp.memory import arrays
        from nbmp.memory.mappings import kept_mapping
        from nbmp.memory.recycler import recycler
        from nbmp.memory.segment import Segment

        held = threading.Event()
        threading.Thread(target=lambda: (lock.acquire(), held.set(), threading.Event().wait()), daemon=True).start()
        held.wait()
        child = os.fork()
        if child == 0:
            signal.alarm(10)
            segment = Segment.create(1 << 20)
            kept_mapping(segment.key, segment.size, segment.fd)
            recycler.put_back(recycler.take(100_000))
            arrays.zeros(3)
            os._exit(7)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        """,
    )
    assert told.split() == ["7"]
