"""`multiprocessing`'s locks and conditions, of which a rank notes those that it has: to be told when it ends.

    rank                                                    launching process
      takes a lock, waits at a condition  ──> its row         reads it when the rank has ended (`launching.left`)
      waits for a lock                    ──> its row         reads it when it tells what a rank waits for

Names and meanings are the standard library's: these are its classes, and its semaphores do the work. A condition, an
event, a barrier, a `Value` and an `Array` are made of locks of this context, so the same holds for them. Plain
semaphores are left alone: one process may take what another one gives, so nobody can tell who has them.

A process that is no rank notes nothing. A rank that is killed right after it has got a lock may not have noted it.

An interrupt may leave no lock taken: where nothing is noted, `with lock:` and `release` are the semaphore's own, in C.
Python looks for interrupts when it begins a function of Python's: one that came during the block would be raised at the
beginning of such a `release`, before the lock is given back.
"""

from collections.abc import Callable
from multiprocessing import context, synchronize, util
from typing import Any

from nbmp.launching import tracker
from nbmp.launching.board import own_row
from nbmp.launching.left import HAD, WAITED, Notes, forget


class _Noted(synchronize.SemLock):
    """A lock of multiprocessing's whose holder notes that it has it."""

    _semlock: Any
    noted_as: bytes = b""

    def _make_methods(self) -> None:  # called when it is made and when it arrives; theirs are methods of C
        self.noted_as = Notes.key(self._semlock.name)

    def acquire(self, block: bool = True, timeout: float | None = None) -> bool:
        semaphore = self._semlock
        before = semaphore._count() if semaphore._is_mine() else 0
        try:
            return self._acquire(block, timeout)
        except BaseException:  # an interrupt: whoever asked for it does not know that he has it
            while semaphore._is_mine() and semaphore._count() > before:
                self.release()
            raise

    def _acquire(self, block: bool, timeout: float | None) -> bool:
        row, semaphore, key = own_row(), self._semlock, self.noted_as
        if row is None or not key:
            return bool(semaphore.acquire(block, timeout))
        if not semaphore.acquire(False):
            if not block:
                return False
            with row.notes.waiting(key):
                if not semaphore.acquire(True, timeout):
                    return False
        row.notes.add(key, HAD)
        return True

    @property
    def release(self) -> Callable[[], None]:
        forget(self.noted_as)
        return self._release if self._is_noted() else self._semlock.release

    @property
    def __enter__(self) -> Callable[[], bool]:
        return self.acquire if self._is_noted() else self._semlock.__enter__

    @property
    def __exit__(self) -> Callable[..., None]:
        return self._release if self._is_noted() else self._semlock.__exit__

    def _is_noted(self) -> bool:
        return own_row() is not None and bool(self.noted_as)

    def _release(self, *_: object) -> None:
        self._semlock.release()
        row = own_row()
        if row is not None and self._semlock._count() <= 0:
            row.notes.remove(self.noted_as, HAD)


class Lock(_Noted, synchronize.Lock):
    """`multiprocessing.Lock`."""


class RLock(_Noted, synchronize.RLock):
    """`multiprocessing.RLock`."""


class Condition(synchronize.Condition):
    """`multiprocessing.Condition`."""

    _lock: Any

    def _make_methods(self) -> None:
        """Theirs takes the lock's methods, which are others in a forked rank."""

    @property
    def acquire(self) -> Callable[..., bool]:
        return self._lock.acquire  # type: ignore[no-any-return]

    @property
    def release(self) -> Callable[[], None]:
        return self._lock.release  # type: ignore[no-any-return]

    @property
    def __enter__(self) -> Callable[[], bool]:
        return self._lock.__enter__  # type: ignore[no-any-return]

    @property
    def __exit__(self) -> Callable[..., None]:
        return self._lock.__exit__  # type: ignore[no-any-return]

    def wait(self, timeout: float | None = None) -> bool:
        row, key = own_row(), self._noted_as
        if row is None or not key:
            return super().wait(timeout)
        row.notes.add(key, WAITED)
        try:
            with row.notes.waiting(key):
                return super().wait(timeout)
        finally:
            row.notes.remove(key, WAITED)

    def notify(self, n: int = 1) -> None:
        row, key = own_row(), self._noted_as
        if row is None or not key:
            return super().notify(n)
        with row.notes.waiting(key):
            return super().notify(n)

    @property
    def _noted_as(self) -> bytes:
        return getattr(self._lock, "noted_as", b"")


class Locks(context.SpawnContext):
    """A context that makes them. Its semaphores keep a name by which another process finds them, until their maker lets
    go of them: so they can travel to processes of every start method, which those of the fork context cannot."""

    def Lock(self) -> Lock:
        return Lock(ctx=self)

    def RLock(self) -> RLock:
        return RLock(ctx=self)

    def Condition(self, lock: Any = None) -> Condition:
        return Condition(lock, ctx=self)

    def Value(self, typecode_or_type: Any, *args: Any, lock: Any = True) -> Any:
        return _forkable(super().Value(typecode_or_type, *args, lock=lock))

    def Array(self, typecode_or_type: Any, size_or_initializer: Any, *, lock: Any = True) -> Any:
        return _forkable(super().Array(typecode_or_type, size_or_initializer, lock=lock))


def _forkable(shared: Any) -> Any:
    """Have a value take its lock's methods anew in a forked rank: they are others there."""
    if hasattr(shared, "get_lock"):
        util.register_after_fork(shared, _take_methods)
    return shared


def _take_methods(shared: Any) -> None:
    shared.acquire, shared.release = shared._lock.acquire, shared._lock.release


locks = Locks()
tracker.keep_apart()  # it unlinks those names if their maker is killed
