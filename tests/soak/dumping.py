"""Where all processes below one are: what the kernel says of each, and the Python stacks of those that answer."""

from __future__ import annotations

import contextlib
import faulthandler
import os
import signal
import time
from pathlib import Path

import psutil

SIGNAL = signal.SIGRTMAX - 3
FOLDER = "NBMP_SOAK_STACKS"
"""Variable with the folder for the stacks."""
ANSWER_SECONDS = 2.0

_file = None


def answer() -> None:
    """Have this process, and those forked from it, write their stacks on `SIGNAL`."""
    global _file
    folder = os.environ.get(FOLDER)
    if folder and _file is None:
        _file = open(Path(folder) / "stacks", "a")  # noqa: SIM115 - faulthandler writes there until the process ends
        faulthandler.register(SIGNAL, file=_file, all_threads=True, chain=False)


def below(pid: int) -> list[int]:
    """Return the process and all its descendants."""
    try:
        top = psutil.Process(pid)
        return [pid, *(child.pid for child in top.children(recursive=True))]
    except psutil.NoSuchProcess:
        return []


def dump(pids: list[int], folder: Path) -> str:
    """Return where these processes are, one after the other."""
    return "\n".join(f"--- {pid} {_kernel_view(pid)}\n{_python_view(pid, folder / 'stacks')}" for pid in pids)


def _kernel_view(pid: int) -> str:
    parts = []
    for name in ("cmdline", "status", "wchan", "syscall", "stack"):
        with contextlib.suppress(OSError):
            text = Path(f"/proc/{pid}/{name}").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            if name == "status":
                kept = ("State", "PPid", "Threads", "SigBlk", "SigIgn", "SigCgt")
                text = " ".join(line for line in text.splitlines() if line.startswith(kept))
            parts.append(f"{name}: {text.strip()[:800]}")
    return "\n    ".join(parts)


def _python_view(pid: int, answers: Path) -> str:
    if not _catches(pid):
        return "    (does not answer)"
    before = answers.stat().st_size
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, SIGNAL)
    deadline = time.monotonic() + ANSWER_SECONDS
    while answers.stat().st_size == before and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(0.1)  # the rest of it
    with answers.open() as file:
        file.seek(before)
        return file.read()


def _catches(pid: int) -> bool:
    """Return whether the process has a handler: the signal would end any other."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return False
    caught = next(int(line.split()[1], 16) for line in lines if line.startswith("SigCgt"))
    return bool(caught >> (SIGNAL - 1) & 1)
