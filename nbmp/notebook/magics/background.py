"""A launch that its cell does not wait for: who follows it, and what appears under the cell when it has ended.

    supervisor         of each launch, as ever: shows output; binds the results before any `join` returns
    nbmp-background    one for each launch in the background: does what `join` would do in a cell that waits. Stops the
                       others when a rank fails, or all when their time is up, and shows that or the results

Nothing is said of ranks that a person has stopped, nor of a failure that a `join` tells in another cell: that has been
seen. Everything is imported before the ranks are forked, so that this thread holds no import lock at a fork.
"""

import contextvars
import logging
import sys
from collections.abc import Callable
from typing import Any

from nbmp import threads
from nbmp.launching.context import ProcessContext
from nbmp.launching.timeouts import stop_late
from nbmp.notebook.magics.arguments import Options
from nbmp.notebook.output.channel import channel_here, is_unattended
from nbmp.notebook.output.results import data_of

_log = logging.getLogger("nbmp")


def watch(shell: Any, context: ProcessContext, options: Options, is_shown: Callable[[list[Any]], bool]) -> None:
    """Follow these ranks to their end, and tell of it under the cell that runs now."""
    follower = _Follower(shell, context, options, is_shown)
    run = contextvars.copy_context().run  # it has the running cell
    threads.start(run, follower.run, name="nbmp-background")


def bind_results(namespace: dict[str, Any], name: str, context: ProcessContext) -> None:
    """Bind the list of results to `name` when all ranks have ended well. Until then nothing is: it would be an earlier
    launch's."""

    def bind() -> None:
        if all(record.state == "done" for record in context.ranks):
            namespace[name] = context.results

    namespace.pop(name, None)
    context.call_at_end(bind)


class _Follower:
    """Runs in its own thread, `__init__` aside."""

    def __init__(self, shell: Any, context: ProcessContext, options: Options, is_shown: Callable[[list[Any]], bool]):
        self._context = context
        self._options = options
        self._is_shown = is_shown
        self._shell = shell
        self._streams = {"stdout": sys.stdout, "stderr": sys.stderr}
        self._channel = channel_here(shell)
        self._is_read = not is_unattended(shell)

    def run(self) -> None:
        try:
            self._follow()
        except Exception:
            _log.exception("the end of a launch in the background could not be shown")

    def _follow(self) -> None:
        context, timeout, grace_period = self._context, self._options.timeout, self._options.grace_period
        if not context.follow(timeout, grace_period) and timeout is not None:
            self._tell(stop_late(context, timeout, grace_period)._render_traceback_())
            return
        error = context.error()
        if error is None:
            self._show_results(context.results)
        elif error.failures and not context.is_heard:
            self._tell(error._render_traceback_())
            if self._is_read:
                context.mark_told()

    def _show_results(self, results: list[Any]) -> None:
        if not self._is_shown(results):
            return
        data = data_of(self._shell, results)
        if self._channel is not None:
            self._channel.send("display_data", {"data": data, "metadata": {}, "transient": {}})
        else:
            self._write("stdout", data["text/plain"])

    def _tell(self, lines: list[str]) -> None:
        self._write("stderr", "\n".join(lines))

    def _write(self, name: str, text: str) -> None:
        stream, text = self._streams[name], f"{text}\n"
        if self._channel is not None and hasattr(stream, "pub_thread"):
            self._channel.send("stream", {"name": name, "text": text}, b"stream." + name.encode())
        elif stream is not None:
            stream.write(text)
            stream.flush()
