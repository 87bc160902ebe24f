"""The sending side of a queue: at once while there is room, by a thread when there is not, in order.

caller's thread    sends, or appends to the backlog when something waits there already
nbmp-feeder        sends the backlog and ends when it is empty; waited for at a normal exit
"""

import errno
import os
import threading
import time
from collections import deque
from collections.abc import Callable
from multiprocessing.util import Finalize
from weakref import WeakSet

from nbmp import threads
from nbmp.channels import Channel
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


when_waiting: list[Callable[[bool], None]] = []
"""Called with True when an exit waits for receivers, and with False when all is sent."""


class Feeder:
    """Sends in order: at once while there is room, by a thread when there is not."""

    def __init__(self, writer: Channel) -> None:
        self._writer = writer
        self._backlog: deque[Parcel] = deque()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        """The thread that sends; entered and taken out by itself, so that an interrupt cannot make it wrong."""
        self._starting: object = None
        """Stands for one that was started and has not entered itself yet."""
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
                except (OSError, MemoryError) as error:
                    if not _passes(error):
                        raise
            parcel.put_away()
            self._start()
            self._backlog.append(parcel)  # last: what an interrupt stops before is not put, what is put has a thread

    def join(self) -> None:
        """Wait until all is sent."""
        while self._backlog:
            with self._lock:
                self._start()
            thread = self._thread
            if thread is None:
                time.sleep(FULL_SECONDS)
            else:
                thread.join()

    def _join_at_exit(self) -> None:
        for tell in when_waiting:
            tell(True)
        self.join()
        for tell in when_waiting:
            tell(False)

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

    def _start(self) -> None:
        """See to it that there is a thread. A second one, after an interrupt, ends by itself."""
        if self._thread is None and self._starting is None:
            if self._at_exit is None and not self._may_lose:
                self._at_exit = Finalize(None, self._join_at_exit, exitpriority=-5)
            token = object()
            threads.start(self._feed, token, name="nbmp-feeder")
            self._starting = token

    def _feed(self, token: object) -> None:
        with self._lock:
            if self._starting is token:
                self._starting = None
            if self._thread is not None:
                return
            self._thread = threading.current_thread()
        stuck_since = 0.0
        while True:
            with self._lock:
                if not self._backlog:
                    self._end()
                    return
                parcel = self._backlog[0]
            if not self._may_go(parcel):
                time.sleep(FULL_SECONDS)
                continue
            try:
                self._writer.send(parcel, patience=0)
            except (OSError, MemoryError) as error:
                if _passes(error):  # wait for the receivers
                    stuck_since = stuck_since or time.monotonic()
                    if time.monotonic() > stuck_since + STUCK_SECONDS:
                        raise_limit()
                    time.sleep(FULL_SECONDS)
                    continue
                with self._lock:  # nobody can receive any more
                    self._backlog.clear()
                    self._end()
                return
            stuck_since = 0.0
            with self._lock:
                self._backlog.popleft()

    def _end(self) -> None:
        self._thread = None
        if self._at_exit is not None:
            self._at_exit.cancel()
            self._at_exit = None

    def _forget(self) -> None:
        """In a forked child: what the parent has not sent is the parent's."""
        self._backlog, self._lock = deque(), threading.Lock()
        self._thread = self._starting = self._at_exit = None


def _passes(error: OSError | MemoryError) -> bool:
    """Return whether it may be sent later: MemoryError comes from a payload that was put away."""
    return isinstance(error, MemoryError) or error.errno in _FOR_NOW


_feeders: "WeakSet[Feeder]" = WeakSet()


def _forget_all() -> None:
    for feeder in list(_feeders):
        feeder._forget()


os.register_at_fork(after_in_child=_forget_all)
