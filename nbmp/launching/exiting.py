"""What becomes of running ranks when the launching process exits normally.

A script waits for its ranks, as multiprocessing does; daemons, and all ranks of a notebook, are stopped. When the
process ends in any other way the ranks' lifelines see to it.
"""

import atexit
from weakref import WeakSet

from nbmp.launching import unjoined
from nbmp.launching.context import INTERRUPT_SECONDS, ProcessContext
from nbmp.launching.private import in_forked_child

_running: "WeakSet[ProcessContext]" = WeakSet()


def end_at_exit(context: ProcessContext) -> None:
    """See to these ranks at exit."""
    _running.add(context)


def _end_all() -> None:
    for context in list(_running):
        if context.daemon or context.frontend.stops_ranks_at_exit:
            context.stop(INTERRUPT_SECONDS, reason="the exit of the process that started it")
    for context in list(_running):
        try:
            context.finished.wait()
        except KeyboardInterrupt:
            context.stop(INTERRUPT_SECONDS, reason="an interrupt")
    unjoined.tell()


atexit.register(_end_all)
in_forked_child(_running.clear)
