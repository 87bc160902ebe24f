"""Clicks on ipykernel 6, whose main thread both runs cells and takes messages: taken while it waits for ranks.

Ways that do not work: `do_one_iteration` runs whatever comes first, so also the next cell, inside this one; a click
handled as the kernel would do it becomes the parent of what the cell prints afterwards.

1. Only messages for widgets that were given to `clicks.arrive_at_once` are taken out, in their order.
2. All others wait in their order, and are not decoded: the kernel takes a message that is decoded twice for a forgery.
3. What the cell prints stays under the cell: no parent is set.
4. It runs between two looks at the ranks, with interrupts held back, in the main thread: nothing of the kernel's runs
   at that time.
"""

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from nbmp.notebook.live import clicks

HEADER, CONTENT = 1, 4
"""Parts of a message, after its identities."""


def can_poll(kernel: Any) -> bool:
    """Return whether this is such a kernel."""
    return hasattr(kernel, "msg_queue") and hasattr(kernel, "shell_stream") and hasattr(kernel, "comm_manager")


def take_clicks(kernel: Any) -> None:
    """Handle the clicks that have come. Only in the main thread, while a cell runs."""
    kernel.shell_stream.flush()  # the stream's callback puts what has come into the queue
    if kernel.msg_queue.qsize() == 0:
        return
    waiting = list(_emptied(kernel.msg_queue))
    taken = []
    for entry in waiting:
        if _is_for_us(kernel, entry):
            taken.append(entry)
        else:
            kernel.msg_queue.put_nowait(entry)
    for _, _, (frames, *_) in taken:
        with suppress(Exception):  # it is one click less
            _handle(kernel, frames)


def _emptied(queue: Any) -> Iterator[Any]:
    for _ in range(queue.qsize()):
        yield queue.get_nowait()


def _is_for_us(kernel: Any, entry: Any) -> bool:
    try:
        frames = entry[2][0]
        _, parts = kernel.session.feed_identities(frames, copy=False)
        if kernel.session.unpack(parts[HEADER].bytes)["msg_type"] != "comm_msg":
            return False
        return _comm_of(kernel, kernel.session.unpack(parts[CONTENT].bytes)) is not None
    except Exception:
        return False


def _comm_of(kernel: Any, content: Any) -> Any:
    comm = kernel.comm_manager.comms.get(content["comm_id"])
    return comm if comm is not None and clicks.is_ours(comm) else None


def _handle(kernel: Any, frames: Any) -> None:
    """As the kernel handles a message, without making it the parent of anything."""
    _, parts = kernel.session.feed_identities(frames, copy=False)
    message = kernel.session.deserialize(parts, content=True, copy=False)
    kernel._publish_status("busy", "shell", parent=message)
    try:
        _comm_of(kernel, message["content"]).handle_msg(message)
    finally:
        kernel._publish_status("idle", "shell", parent=message)  # a front end sends the next change after it
        kernel._publish_status("busy", "shell")  # the cell runs on
