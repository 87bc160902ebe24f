"""A real kernel to run cells in, with everything it says kept: what, under which cell, when."""

from __future__ import annotations

import queue
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import psutil
import pytest

pytest.importorskip("jupyter_client", reason="kernels need jupyter_client")  # a machine with a GPU may lack it
from jupyter_client.manager import KernelManager

PATIENCE = 60.0


@dataclass(frozen=True)
class Message:
    """One message that the kernel published."""

    kind: str
    content: dict[str, Any]
    cell: str
    """Message id of the request that it belongs to."""
    when: float


@dataclass
class Cell:
    """One cell that was run, and what was published under it so far; later messages are added."""

    id: str
    started: float
    messages: list[Message] = field(default_factory=list)
    ended: float = 0.0
    status: str = ""

    def of(self, *kinds: str) -> list[Message]:
        """Return its messages of these kinds."""
        return [message for message in self.messages if message.kind in kinds]

    def text(self, stream: str = "stdout") -> str:
        """Return what a person reads of this stream, without colours."""
        return plain("".join(m.content["text"] for m in self.of("stream") if m.content["name"] == stream))

    @property
    def value(self) -> str | None:
        """Return the text of its value, None when it showed none."""
        results = self.of("execute_result")
        return results[0].content["data"]["text/plain"] if results else None

    @property
    def error(self) -> str:
        """Return what is shown in red, without colours: the usage error or the traceback."""
        tracebacks = ["\n".join(message.content["traceback"]) for message in self.of("error")]
        return plain("\n".join(tracebacks)) or self.text("stderr")


class Kernel:
    """A kernel of the environment that runs the tests."""

    def __init__(self, folder: str, env: dict[str, str]) -> None:
        self._manager = KernelManager(kernel_name="python3")
        self.folder = folder
        self._manager.start_kernel(cwd=folder, env=env)
        self._client = self._manager.blocking_client()
        self._client.start_channels()
        self._client.wait_for_ready(timeout=PATIENCE)
        info = self._client.kernel_info(reply=True, timeout=PATIENCE)["content"]
        self.has_subshells = "kernel subshells" in info.get("supported_features", [])
        self.pid = self._ask_pid()
        self.is_attended = True
        """Whether somebody sits at the front end, who could be asked for input."""
        self._cells: dict[str, Cell] = {}
        self.messages: list[Message] = []
        """Everything published, whatever it belongs to, comm messages included."""

    def start(self, code: str) -> Cell:
        """Send a cell and return at once."""
        request = self._client.execute(code, allow_stdin=self.is_attended, stop_on_error=False)
        cell = Cell(request, time.monotonic())
        self._cells[request] = cell
        return cell

    def run(self, code: str, *, fails: bool = False) -> Cell:
        """Run a cell to its end. Its failure is one of the test unless `fails`, and the other way round."""
        cell = self.start(code)
        self.until(lambda: bool(cell.ended), "the cell is done")
        assert (cell.status == "error") == fails, f"{cell.status}: {cell.error}\n{cell.text()}"
        return cell

    def until(self, is_met: Callable[[], bool], what: str, patience: float = PATIENCE) -> None:
        """Take messages until the condition is met; AssertionError when it is not in time."""
        deadline = time.monotonic() + patience
        while not is_met():
            try:
                self._take(self._client.get_iopub_msg(timeout=0.2))
            except queue.Empty:
                assert time.monotonic() < deadline, f"not within {patience} s: {what}"
                assert self._manager.is_alive(), f"the kernel died while waiting: {what}"

    def complete(self, code: str, cursor: int) -> list[str]:
        """Press Tab at the cursor and return what is offered."""
        content = self._client.complete(code, cursor, reply=True, timeout=PATIENCE)["content"]
        return list(content["matches"])

    def interrupt(self) -> None:
        """Press the stop button."""
        self._manager.interrupt_kernel()

    def subshell(self) -> str | None:
        """Have the kernel make a subshell, as JupyterLab does for widgets; None where kernels have none."""
        if not self.has_subshells:
            return None
        request = self._client.session.msg("create_subshell_request")
        self._client.control_channel.send(request)
        while True:
            reply = self._client.get_control_msg(timeout=PATIENCE)
            if reply["parent_header"].get("msg_id") == request["header"]["msg_id"]:
                return str(reply["content"]["subshell_id"])

    def touch(self, comm: str, data: dict[str, Any], subshell: str | None) -> None:
        """Send what a front end sends when a person does something to a widget."""
        message = self._client.session.msg("comm_msg", {"comm_id": comm, "data": data})
        if subshell is not None:
            message["header"]["subshell_id"] = subshell
        self._client.shell_channel.send(message)

    def click(self, comm: str, subshell: str | None = None) -> None:
        """Click on the button with this comm."""
        self.touch(comm, {"method": "custom", "content": {"event": "click"}}, subshell)

    def restart(self) -> None:
        """Restart the kernel, as a person does in the menu: it may see to what it has open."""
        self._manager.restart_kernel()
        self._client.wait_for_ready(timeout=PATIENCE)
        self.pid = self._ask_pid()

    def shut_down(self) -> None:
        """Ask the kernel to end, as a person does in the menu; it is not waited for."""
        self._client.shutdown()

    def close(self) -> None:
        """End the kernel."""
        try:
            self._descendants = psutil.Process(self.pid).children(recursive=True)
        except psutil.NoSuchProcess:  # the test has killed it
            self._descendants = []
        self._client.stop_channels()
        self._manager.shutdown_kernel(now=True)
        self._manager.cleanup_resources()
        self._client.context.destroy(linger=0)

    def left_behind(self) -> list[psutil.Process]:
        """Return the processes of the kernel that outlived it, after a moment of patience."""
        return psutil.wait_procs(self._descendants, timeout=5)[1]

    def _ask_pid(self) -> int:
        reply = self._client.execute("", user_expressions={"pid": "__import__('os').getpid()"}, reply=True)
        return int(reply["content"]["user_expressions"]["pid"]["data"]["text/plain"])

    def _take(self, raw: dict[str, Any]) -> None:
        parent = raw["parent_header"].get("msg_id", "")
        message = Message(raw["msg_type"], raw["content"], parent, time.monotonic())
        self.messages.append(message)
        cell = self._cells.get(parent)
        if cell is None:
            return
        cell.messages.append(message)
        if message.kind == "status" and message.content["execution_state"] == "idle":
            cell.status = self._reply_of(cell)
            cell.ended = message.when

    def _reply_of(self, cell: Cell) -> str:
        while True:
            reply = self._client.get_shell_msg(timeout=PATIENCE)
            if reply["parent_header"].get("msg_id") == cell.id:
                return str(reply["content"]["status"])


def plain(text: str) -> str:
    """Return `text` without terminal colours."""
    import re

    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def tables(messages: list[Message]) -> Iterator[str]:
    """Return each form of a rank table that was published: as a widget's value or as HTML."""
    for message in messages:
        data = message.content.get("data", {})
        if message.kind in ("comm_open", "comm_msg"):
            html = data.get("state", {}).get("value", "")
        else:
            html = data.get("text/html", "")
        if "nbmp-ranks" in html or 'class="rank ' in html:
            yield html
