"""A subshell of nbmp's own, for front ends that send all messages to the kernel's main thread (VS Code, Notebook 6).

ipykernel 7.4 asks a widget's comm which subshell shall have a message, in the thread that reads the shell channel.
There is no public way to make a subshell in the kernel; where this one fails, clicks come when the cell has ended.
"""

from contextlib import suppress
from typing import Any

_id: str | None = None


def own(kernel: Any) -> str | None:
    """Return its id; it is made at the first call. Only in the thread that reads the shell channel."""
    global _id
    with suppress(Exception):
        manager = kernel.shell_channel_thread.manager
        if _id not in manager.list_subshell():
            _id = manager._create_subshell()
        return _id
    return None
