"""`multiprocessing`'s manager, whose proxies can be called again after a call that was interrupted.

    proxy, in any process        one connection for each thread         the manager's process
      sends the call        ──>                                    ──>   a thread does it
      waits for the answer  <──                                    <──   answers

A KeyboardInterrupt ends the wait, not the call: `queue.get()` goes on over there. With the standard library's proxies
its answer is then what the next call gets, whichever that is. Here each connection knows which call it has to answer:

- the same call again, with the same arguments, waits on for that answer: no item is lost that the first one gets;
- every other call takes another connection.

A lock of the manager is held by the thread over there, so by a connection. While it holds one it is for the calls of
that lock only, so that no other call, interrupted, keeps it. Where a call of the lock itself was interrupted, that lock
is given back behind it: `release` returns at once, and is done when the interrupted call is. So is an `acquire`.
"""

import contextlib
import multiprocessing.managers as standard
import queue
from collections import Counter
from collections.abc import Sequence
from multiprocessing.reduction import ForkingPickler
from typing import Any

from nbmp.waiting import readable


class _Line:
    """A connection to the manager of one thread, one of several."""

    def __init__(self, connection: Any, lines: "list[_Line]") -> None:
        self._connection = connection
        self._lines = lines
        self.unanswered: bytes | None = None
        """The call that it has to answer."""
        self.to_send = b""
        self.held: Counter[str] = Counter()
        """The locks that its thread over there has, by their proxies' names, and how often."""
        self._to_come = 0
        """Answers that nobody waits for."""

    @property
    def is_free(self) -> bool:
        """Return whether any call may use it."""
        return self.unanswered is None and not +self.held

    def send_behind(self, call: bytes) -> None:
        """Send a call whose answer nobody waits for, behind one that goes on; afterwards it is for nothing else."""
        with _Whole(self):
            self._connection.send_bytes(call)
        self._to_come += 1 + (self._to_come == 0)
        self.unanswered = b""

    def is_over(self) -> bool:
        """Return whether all has come that nobody waits for, of a line that is for nothing else."""
        try:
            while self._to_come and readable(self._connection.fileno(), 0):
                self._connection.recv_bytes()
                self._to_come -= 1
                if not self._to_come:
                    return True
        except (EOFError, OSError):
            return True
        return False

    def send(self, _: object) -> None:
        """Send the call, if it was not sent before."""
        if self.unanswered is not None:
            return
        with _Whole(self):
            self._connection.send_bytes(self.to_send)
            self.unanswered = self.to_send

    def recv(self) -> Any:
        """Return the answer. An interrupt while it is waited for changes nothing."""
        readable(self._connection.fileno(), None)
        with _Whole(self):
            answer = self._connection.recv_bytes()
            self.unanswered = None
        return ForkingPickler.loads(answer)

    def drop(self) -> None:
        """Never use it again."""
        self._connection.close()
        if self in self._lines:
            self._lines.remove(self)

    def close(self) -> None:
        """Close it and all others of the thread: it has no proxies of this manager any more."""
        for line in list(self._lines):
            line.drop()


class _Whole:
    """A block after which a connection is dropped if it did not come to its end: part of a message has gone through."""

    def __init__(self, line: _Line) -> None:
        self._line = line

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is not None:
            self._line.drop()


class Resuming(standard.BaseProxy):
    """A proxy that waits on for the answer of an interrupted call, when it is called so again."""

    _tls: Any
    _id: str

    def _callmethod(self, methodname: str, args: Sequence[Any] = (), kwds: Any = {}) -> Any:  # noqa: B006 - theirs
        self._choose(self._call(methodname, args, kwds))
        return super()._callmethod(methodname, tuple(args), kwds)

    def _call(self, methodname: str, args: Sequence[Any] = (), kwds: Any = {}) -> bytes:  # noqa: B006 - as above
        return bytes(ForkingPickler.dumps((self._id, methodname, args, kwds)))

    def _choose(self, call: bytes) -> None:
        """Make the connection for this call the thread's present one."""
        lines: list[_Line] = vars(self._tls).setdefault("lines", [])
        for line in list(lines):
            if line.is_over():
                line.drop()
        self._use(self._line(lines, call), lines, call)

    def _line(self, lines: list[_Line], call: bytes) -> _Line | None:
        """Return which of these connections is for this call, None for a new one."""
        line = next((line for line in lines if line.unanswered == call), None)
        return line or next((line for line in lines if line.is_free), None)

    def _use(self, line: _Line | None, lines: list[_Line], call: bytes) -> None:
        if line is None:
            self._connect()  # type: ignore[attr-defined]
            line = _Line(self._tls.connection, lines)
            lines.append(line)
        line.to_send = call
        self._tls.connection = line


class Held(Resuming):
    """One of what is taken and given back: a lock, a condition, a semaphore."""

    _token: Any

    def _callmethod(self, methodname: str, args: Sequence[Any] = (), kwds: Any = {}) -> Any:  # noqa: B006 - theirs
        line = self._holder()
        if methodname == "release" and line is not None and line.unanswered is not None:
            line.held[self._id] -= 1
            return line.send_behind(self._call("release"))
        try:
            answer = super()._callmethod(methodname, args, kwds)
        except BaseException:
            if methodname == "acquire" and tuple(args) in _UNBOUNDED:
                self._give_back_after(self._call(methodname, args, kwds))
            raise
        if self._token.typeid in _OWNED and (methodname == "release" or (methodname == "acquire" and answer)):
            self._tls.connection.held[self._id] += 1 if methodname == "acquire" else -1
        return answer

    def _give_back_after(self, call: bytes) -> None:
        """Have what an interrupted call takes given back, if it is under way."""
        line = getattr(self._tls, "connection", None)
        if isinstance(line, _Line) and line.unanswered == call:
            with contextlib.suppress(OSError):  # the manager is gone
                line.send_behind(self._call("release"))

    def _holder(self) -> _Line | None:
        lines: list[_Line] = vars(self._tls).get("lines", [])
        return next((line for line in lines if line.held[self._id] > 0), None)

    def _line(self, lines: list[_Line], call: bytes) -> _Line | None:
        holder = self._holder()
        if holder is not None and holder.unanswered in (None, call):
            return holder
        return super()._line(lines, call)


_OWNED = ("RLock", "Condition")
"""What only that thread can give back, and take again, that has it; others may be given back by any."""
_UNBOUNDED = ((), (True,), (True, None))
"""Arguments of an `acquire` that comes to its end only with the lock."""


def _resuming(proxy: Any) -> Any:
    """Return a class of this module, which it is pickled by, for one of the standard library's."""
    base = Held if issubclass(proxy, vars(standard)["AcquirerProxy"]) else Resuming
    return type(proxy.__name__, (base, proxy), {"__module__": __name__, "__doc__": proxy.__doc__})


def _proxies() -> dict[str, Any]:
    theirs = [proxy for *_, proxy in standard.SyncManager._registry.values()]  # type: ignore[attr-defined]
    theirs += [vars(standard)["MakeProxyType"]("QueueProxy", _public(queue.Queue))]
    return {proxy.__name__: _resuming(proxy) for proxy in theirs if isinstance(proxy, type)}


def _public(kind: type) -> list[str]:
    return [name for name in dir(kind) if not name.startswith("_") and callable(getattr(kind, name))]


proxies = _proxies()
globals().update(proxies)


class SyncManager(standard.SyncManager):
    """`multiprocessing.managers.SyncManager`."""


def _register() -> None:
    registry = standard.SyncManager._registry  # type: ignore[attr-defined]
    for name, (made_by, exposed, method_to_typeid, proxy) in registry.items():
        if isinstance(proxy, type):
            ours = proxies[proxy.__name__]
        elif made_by is queue.Queue:
            ours, exposed = proxies["QueueProxy"], None
        else:
            continue
        SyncManager.register(name, made_by, ours, exposed, method_to_typeid, hasattr(standard.SyncManager, name))


_register()
