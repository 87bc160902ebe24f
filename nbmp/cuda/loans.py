"""What this process lends: memory and events that others use, kept until nobody does.

    producer    thing and lease file    looked at from time to time: when no lease is left, the thing is let go
    a message   lease                   on its way, or thrown away unread: then it ends
    receiver    lease                   ends with its last array, or with the process, however that ends
    another     lease                   of the same lease file, when a receiver sends on what it received

A lease file is an empty segment with nothing but its leases (see `nbmp.memory.segment`): a number of descriptors that
the kernel counts. It also names what is lent: whoever receives a lease of a file that this process made has received
its own thing.
"""

import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, NamedTuple

from nbmp.memory import janitor
from nbmp.memory.descriptors import Owned, made
from nbmp.memory.mappings import Key
from nbmp.memory.segment import Segment

PURPOSE = "gpu"
"""In the name of a lease file."""

SCAN = 4
"""How many loans are looked at whenever something is lent, the oldest first: so that what is over does not pile up."""


class Told(NamedTuple):
    """What receivers are told of a thing, and what must be kept as long as they may use it."""

    about: tuple[Any, ...]
    kept: object = None
    is_over: Callable[[], bool] = lambda: True
    """Whether it may be let go, once nobody has a lease."""


class Loan(NamedTuple):
    """Something lent, which is kept."""

    thing: Any
    told: Told
    segment: Segment

    def is_over(self) -> bool:
        return self.segment.is_free() and self.told.is_over()


class Loans:
    """All that this process lends at present."""

    def __init__(self) -> None:
        self._by_thing: OrderedDict[int, Loan] = OrderedDict()  # its entry is the first to come and the last to go
        self._by_key: dict[Key, Loan] = {}
        self._lock = threading.RLock()

    def lend(self, thing: Any, tell: Callable[[], Told]) -> tuple[tuple[Any, ...], Owned]:
        """Return a new lease on `thing`, and what receivers are told of it: `tell()` when it is not lent already."""
        with self._lock:
            loan = self._by_thing.get(id(thing))
            if loan is None:
                self._look_at_some()
                loan = Loan(thing, tell(), Segment.create(1, PURPOSE))
                lease = loan.segment.lend()
                self._by_thing[id(thing)] = loan
                self._by_key[loan.segment.key] = loan
            else:
                lease = loan.segment.lend()
        janitor.look_after()
        return loan.told.about, lease

    def _look_at_some(self) -> None:
        for loan in list(islice(self._by_thing.values(), SCAN)):
            if loan.is_over():
                self._let_go(loan)
            else:
                self._by_thing.move_to_end(id(loan.thing))

    def _let_go(self, loan: Loan) -> None:
        self._by_key.pop(loan.segment.key, None)
        self._by_thing.pop(id(loan.thing), None)

    def thing_of(self, key: Key) -> Any:
        """Return what is lent by this lease file, None when it is not this process' own."""
        loan = self._by_key.get(key)
        return None if loan is None else loan.thing

    def sweep(self, idle: float = 0.0) -> int:
        """Let go of all that nobody uses any more; return how much is still lent."""
        with self._lock:
            over = [loan for loan in self._by_thing.values() if loan.is_over()]
            for loan in over:
                self._let_go(loan)
            return len(self._by_thing)

    def __iter__(self) -> Iterator[Loan]:
        with self._lock:
            return iter(list(self._by_thing.values()))

    def forget(self) -> None:
        """In a forked child: the parent lends. The things are kept, since to free them would call CUDA."""
        _useless.append((self._by_thing, self._by_key))
        for loan in self._by_thing.values():
            loan.segment.control.close()
        self.__init__()  # type: ignore[misc]  # the same object: others refer to it


_useless: list[Any] = []
loans = Loans()
janitor.others.append(loans.sweep)
os.register_at_fork(after_in_child=loans.forget)


def key_of(lease: Owned) -> Key:
    """Return the name of the lease file of a lease."""
    status = os.fstat(lease.fileno())
    return status.st_dev, status.st_ino


def another(lease: Owned) -> Owned:
    """Return a new lease of the same file: for what was received and is sent on."""
    return Segment(made(os.dup, lease.fileno())).lend()
