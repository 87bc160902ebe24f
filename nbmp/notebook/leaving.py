"""The end of IPython in a terminal: ranks that run are stopped, and that is said."""

import atexit
import sys
from typing import Any

from nbmp.launching import registry
from nbmp.launching.context import ProcessContext
from nbmp.launching.stopping import INTERRUPT_SECONDS


def enable(shell: Any) -> None:
    """Say it when this shell ends, if it is a terminal's."""
    disable()
    if not hasattr(shell, "kernel"):
        atexit.register(_stop_all)


def disable() -> None:
    """Say nothing."""
    atexit.unregister(_stop_all)


def _stop_all() -> None:
    for context in registry.running_of(ProcessContext):
        if context.kind == "launch" and not context.daemon:
            context.stop(INTERRUPT_SECONDS, reason="the end of IPython")
            sys.stderr.write(f"nbmp: {registry.title(context)} still ran and was stopped: {context.aftermath}\n")
