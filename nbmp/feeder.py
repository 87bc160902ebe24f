"""The sending side of a queue: at once while there is room, by a thread when there is not, in order.

caller's thread    sends, or appends to the backlog when something waits there already
nbmp-feeder        sends the backlog and ends when it is empty; waited for at a normal exit
"""

import errno
import os
import threading
import time
from collections import deque
from multiprocessing.util import Finalize
from weakref import WeakSet

from nbmp.channels import Channel
from nbmp.errors import SharedMemoryError
from nbmp.memory.room import kept_count, raise_limit
from nbmp.pickling.parcel import Parcel
from nbmp.platforms import unreceived_bytes

FULL_SECONDS = 0.001
"""Between two attempts to send while the kernel has too many descriptors under way (a limit for each user)."""


_FOR_NOW = {
    errno.EAGAIN,  # the channel is full
    errno.ETOOMANYREFS,  # so many descriptors of this user are under way that the kernel takes no more
    errno.EMFILE,  # none is left for a payload that was put away
    errno.ENOBUFS,
    errno.ENOMEM,
}

STUCK_SECONDS = 1.0
"""After which the soft limit of open files is raised: it is the limit of descriptors under way as well.

Not at once, so that launches, which raise it at once, find room when queues have filled what there was.
"""
MOST_UNDER_WAY = 1 << 16
"""Messages with descriptors that one queue has under way; fewer under a low limit of open files.

The limit of descriptors under way is one for all processes of a user. A queue that filled it would stop all others, and
with them perhaps whoever is to read it.
"""
PACKET_BYTES = 768
"""What the kernel takes for a small packet."""


class Feeder:
    """Sends in order: at once while there is room, by a thread when there is not."""

    def __init__(self, writer: Channel) -> None:
        self._writer = writer
        self._backlog: deque[Parcel] = deque()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._may_lose = False
        self._at_exit: Finalize | None = None
        _feeders.add(self)

    def send(self, parcel: Parcel) -> None:
        """Send it, or see to it that it is sent."""
        with self._lock:
            if not self._backlog and self._may_go(parcel):
                try:
                    self._writer.send(parcel, wait=False)
                    return
                except (OSError, SharedMemoryError) as error:
                    if not _passes(error):
                        raise
            parcel.put_away()
            self._backlog.append(parcel)
            if self._thread is None:
                self._thread = threading.Thread(target=self._feed, name="nbmp-feeder", daemon=True)
                if not self._may_lose:
                    self._at_exit = Finalize(None, self.join, exitpriority=-5)
                self._thread.start()

    def join(self) -> None:
        """Wait until all is sent."""
        thread = self._thread
        if thread is not None:
            thread.join()

    def cancel_join(self) -> None:
        """Do not wait at exit until all is sent."""
        self._may_lose = True
        if self._at_exit is not None:
            self._at_exit.cancel()

    def _may_go(self, parcel: Parcel) -> bool:
        """Return whether this queue has its share of the descriptors under way, in messages nobody has received."""
        if not parcel.owners:
            return True
        return unreceived_bytes(self._writer.fd) <= kept_count(MOST_UNDER_WAY) * PACKET_BYTES

    def _feed(self) -> None:
        stuck_since = 0.0
        while True:
            with self._lock:
                if not self._backlog:
                    self._thread = None
                    if self._at_exit is not None:
                        self._at_exit.cancel()
                    return
                parcel = self._backlog[0]
            if not self._may_go(parcel):
                time.sleep(FULL_SECONDS)
                continue
            try:
                self._writer.send(parcel, patience=0)
            except (OSError, SharedMemoryError) as error:
                if _passes(error):  # wait for the receivers
                    stuck_since = stuck_since or time.monotonic()
                    if time.monotonic() > stuck_since + STUCK_SECONDS:
                        raise_limit()
                    time.sleep(FULL_SECONDS)
                    continue
                return  # nobody can receive any more
            stuck_since = 0.0
            with self._lock:
                self._backlog.popleft()

    def _forget(self) -> None:
        """In a forked child: what the parent has not sent is the parent's."""
        self._backlog, self._lock, self._thread, self._at_exit = deque(), threading.Lock(), None, None


def _passes(error: OSError | SharedMemoryError) -> bool:
    """Return whether it may be sent later: SharedMemoryError comes from a payload that was put away."""
    return isinstance(error, SharedMemoryError) or error.errno in _FOR_NOW


_feeders: "WeakSet[Feeder]" = WeakSet()


def _forget_all() -> None:
    for feeder in list(_feeders):
        feeder._forget()


os.register_at_fork(after_in_child=_forget_all)
