"""What a thread waits for, told from the functions that it is in: the queue, barrier or lock that its code named.

The innermost frames are those of a library down to a system call; the outermost of them that is known here is what the
user's code called. A lock whose `acquire` is written in C leaves no frame: there the system says that it waits.
"""

import ast
from collections.abc import Sequence
from functools import lru_cache
from itertools import takewhile

from nbmp.launching.describing import library_path
from nbmp.launching.messages import RawFrame

_QUEUE = {
    "Queue.get": "a queue (get)",
    "Queue.put": "a queue (put)",
    "Queue.join": "a queue (join)",
    "SimpleQueue.get": "a queue (get)",
    "SimpleQueue.put": "a queue (put)",
    "JoinableQueue.join": "a queue (join)",
    "Queue.join_thread": "a queue (join_thread)",
}
_PIPE = {
    f"{kind}.{method}": f"a pipe ({method})"
    for kind in ("_ConnectionBase", "Connection")
    for method in ("recv", "recv_bytes", "recv_bytes_into", "poll", "send", "send_bytes")
}
_POOL = {f"{kind}.{method}": "a pool" for kind in ("AsyncResult", "ApplyResult") for method in ("get", "wait")}

WAITS: dict[str, dict[str, str]] = {
    "threading.py": {
        "Barrier.wait": "a barrier",
        "Condition.wait": "a condition",
        "Condition.wait_for": "a condition",
        "Event.wait": "an event",
        "Semaphore.acquire": "a semaphore",
        "Thread.join": "a thread",
        "_RLock.acquire": "a lock",
    },
    "queue.py": _QUEUE,
    "multiprocessing/queues.py": _QUEUE,
    "multiprocessing/synchronize.py": {
        "Condition.wait": "a condition",
        "Condition.wait_for": "a condition",
        "Event.wait": "an event",
        "SemLock.__enter__": "a lock",
        "Condition.__enter__": "a lock",
        "Condition.notify": "a condition (notify)",
        "Event.set": "an event (set)",
        "Event.is_set": "an event",
        "Event.clear": "an event",
    },
    "nbmp/locks.py": {
        "_Noted.acquire": "a lock",
        "_Noted.__enter__": "a lock",
        "Condition.wait": "a condition",
        "Condition.notify": "a condition (notify)",
    },
    "multiprocessing/connection.py": {**_PIPE, "wait": "one of several connections"},
    "multiprocessing/pool.py": {**_POOL, "IMapIterator.next": "a pool", "Pool.join": "a pool"},
    "multiprocessing/process.py": {"BaseProcess.join": "a process"},
    "multiprocessing/managers.py": {"BaseProxy._callmethod": "a manager"},
    "concurrent/futures/_base.py": {
        "Future.result": "a future",
        "Future.exception": "a future",
        "wait": "futures",
        "as_completed": "futures",
    },
    "subprocess.py": {"Popen.wait": "a program", "Popen.communicate": "a program"},
    "nbmp/queue.py": _QUEUE,
    "nbmp/pipe.py": _PIPE,
    "nbmp/pools/results.py": {
        **_POOL,
        "MapResult.get": "a pool",
        "Results.next": "a pool",
        "Results.__next__": "a pool",
    },
    "nbmp/pools/serving.py": {"serve": "a task", "_do": ""},
    "nbmp/launching/context.py": {"ProcessContext.join": "ranks of its own"},
}
"""By file and qualified name of a function: what somebody waits for in it. Empty: not what its caller waits for."""

POLLING = ("a queue (join)", "a queue (put)", "a pool", "ranks of its own")
"""Waits in which a thread runs now and then, only to look."""


def waits_for(frames: Sequence[RawFrame], is_users: Sequence[bool]) -> str:
    """Return what a thread with these frames (outermost first) waits for; empty when that is not known."""
    library = list(takewhile(lambda pair: not pair[1], zip(reversed(frames), reversed(is_users), strict=True)))
    answer = ""
    for frame, _ in reversed(library):
        known = WAITS.get(library_path(frame.filename), {})
        found = known.get(_qualified_name(frame.filename, frame.line)) if known else None
        if found is not None and not (answer and found):
            answer = found
    return answer


def _qualified_name(filename: str, line: int) -> str:
    """Return `Barrier.wait` for a line inside that method."""
    inside = [(first, name) for first, last, name in _functions(filename) if first <= line <= last]
    return max(inside)[1] if inside else ""


@lru_cache(maxsize=64)
def _functions(filename: str) -> list[tuple[int, int, str]]:
    """Return first line, last line and qualified name of all functions in a source file."""
    found: list[tuple[int, int, str]] = []

    def visit(node: ast.AST, prefix: str) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                name = prefix + child.name
                if not isinstance(child, ast.ClassDef):
                    found.append((child.lineno, child.end_lineno or child.lineno, name))
                visit(child, f"{name}.")

    try:
        with open(filename, "rb") as file:
            visit(ast.parse(file.read()), "")
    except (OSError, SyntaxError, ValueError):
        pass
    return found
