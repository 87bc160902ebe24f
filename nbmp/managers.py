"""`multiprocessing`'s manager, whose proxies can be called again after a call that was interrupted.

    proxy, in any process        one connection for each thread         the manager's process
      sends the call        ──>                                    ──>   a thread does it
      waits for the answer  <──                                    <──   answers

A KeyboardInterrupt ends the wait, not the call: `queue.get()` goes on over there. With the standard library's proxies
its answer is then what the next call gets, whichever that is. Here each connection knows which call it has to answer:

- the same call again, with the same arguments, waits on for that answer: no item is lost that the first one gets;
- every other call takes another connection.

A lock of the manager is held by the thread over there, so by a connection: one that was taken on a connection that is
still busy can be given back only when the interrupted call is done.
"""

import multiprocessing.managers as standard
import queue
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

    def _callmethod(self, methodname: str, args: Sequence[Any] = (), kwds: Any = {}) -> Any:  # noqa: B006 - theirs
        call = bytes(ForkingPickler.dumps((self._id, methodname, args, kwds)))  # type: ignore[attr-defined]
        self._choose(call)
        return super()._callmethod(methodname, tuple(args), kwds)

    def _choose(self, call: bytes) -> None:
        """Make the connection for this call the thread's present one."""
        lines: list[_Line] = vars(self._tls).setdefault("lines", [])
        line = next((line for line in lines if line.unanswered == call), None)
        line = line or next((line for line in lines if line.unanswered is None), None)
        if line is None:
            self._connect()  # type: ignore[attr-defined]
            line = _Line(self._tls.connection, lines)
            lines.append(line)
        line.to_send = call
        self._tls.connection = line


def _resuming(proxy: Any) -> Any:
    """Return a class of this module, which it is pickled by, for one of the standard library's."""
    return type(proxy.__name__, (Resuming, proxy), {"__module__": __name__, "__doc__": proxy.__doc__})


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
