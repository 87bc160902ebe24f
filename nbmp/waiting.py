"""Waiting for descriptors."""

import select


def readable(fd: int, timeout: float | None) -> bool:
    """Wait until `fd` is readable, at most `timeout` seconds (None: without a bound); return whether it is."""
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    return bool(poll.poll(None if timeout is None else max(0.0, timeout * 1000)))
