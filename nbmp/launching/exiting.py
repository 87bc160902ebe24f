"""What becomes of running ranks when the launching process exits normally.

A script waits for its ranks, as multiprocessing does; daemons, and all ranks of a notebook, are stopped. When the
process ends in any other way the ranks' lifelines see to it.
"""

import atexit

from nbmp.launching import registry, unjoined
from nbmp.launching.context import ProcessContext
from nbmp.launching.stopping import INTERRUPT_SECONDS


def end_at_exit(context: ProcessContext) -> None:
    """See to these ranks at exit."""
    registry.enter(context)


def _end_all() -> None:
    awaited = []
    for context in registry.running_of(ProcessContext):
        if context.daemon or context.frontend.stops_ranks_at_exit:  # what is given up then is not waited for
            context.stop(INTERRUPT_SECONDS, reason="the exit of the process that started it")
        else:
            awaited.append(context)
    for context in awaited:
        try:
            context.finished.wait()
        except KeyboardInterrupt:
            context.stop(INTERRUPT_SECONDS, reason="an interrupt")
    unjoined.tell()


atexit.register(_end_all)
