"""Memory for telling that there is none. Runs in the rank."""

import contextlib


def let_go(error: BaseException) -> None:
    """Have the frames of a MemoryError, which are over, give up what they hold; of other errors they keep it.

    Telling takes memory as well: modules are imported for it, and a traceback is made into text.
    """
    trace = error.__traceback__ if isinstance(error, MemoryError) else None
    while trace is not None:
        with contextlib.suppress(RuntimeError):  # it still runs: the caller of all others
            trace.tb_frame.clear()
        trace = trace.tb_next
