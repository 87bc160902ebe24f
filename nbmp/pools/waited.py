"""What all calls to a pool have in common: tasks that are counted, and somebody who waits for them.

Whoever waits is woken by a bell, one for news and one for room: the pool's thread rings it.
"""

from collections.abc import Callable
from concurrent.futures import CancelledError

from nbmp.launching.interrupted import explain
from nbmp.pools.workers import Workers
from nbmp.waiting import Bell

_INTERRUPTED = "the tasks of this call are lost: their workers were stopped and replaced; the pool goes on"


class Waited:
    """Has tasks, and something that waits for them."""

    def __init__(self, workers: Workers, owner: object) -> None:
        self._workers = workers
        self._owner: object = owner
        """The pool: it is not let go while this is under way."""
        self._changed = Bell()
        self._room = Bell()
        """For whoever submits tasks, and waits until there are fewer."""
        self._over = False
        self._submitted = 0
        """Counted by the thread that submits."""
        self._finished = 0
        """Counted by the pool's thread."""
        self._enough = -1
        """So few unfinished tasks are waited for there."""

    @property
    def _unfinished(self) -> int:
        return self._submitted - self._finished

    def begin(self, index: int) -> bool:
        return not self._over

    def waits_again(self, index: int) -> None:
        pass

    def submitting(self) -> None:
        """One task more is on its way."""
        self._submitted += 1

    def wait_for_room(self, most: int) -> bool:
        """Once `most` tasks are unfinished, wait until half of them are done; return whether more are wanted."""
        if self._unfinished >= most:
            self._enough = most // 2
            self._room.wait_for(lambda: self._over or self._unfinished <= most // 2)
        return not self._over

    def _count(self) -> None:
        """One task more is finished."""
        self._finished += 1
        if self._submitted - self._finished <= self._enough:
            self._room.ring()

    def _end(self) -> None:
        """It is over."""
        self._over = True
        self._room.ring()
        self._workers.bells.add(self._changed)

    def stop(self, reason: str) -> None:
        """Stop all tasks of this call."""
        error = CancelledError(f"the tasks of this call were stopped by {reason}")
        self._workers.tell(self.end_with, error)
        self._workers.stop(self, error)  # type: ignore[arg-type]  # its subclasses are jobs

    def interrupted(self, press: BaseException) -> None:
        """Stop the tasks because of an interrupt, which then says what became of them, or of another error."""
        self.stop("an interrupt")
        if isinstance(press, KeyboardInterrupt):
            explain(press, _INTERRUPTED)

    def end_with(self, error: BaseException) -> None:
        """It is over now, with this error; what tasks still tell is not wanted."""
        raise NotImplementedError

    def _wait(self, condition: Callable[[], bool], timeout: float | None) -> bool:
        self._workers.assert_own()
        if condition():
            return True
        if self._workers.is_here():
            raise RuntimeError("a callback cannot wait for a result: it would wait for itself")
        return self._changed.wait_for(condition, timeout)
