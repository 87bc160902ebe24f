"""What a channel has received: pickled still, or not to be read at all."""

from typing import Any

from nbmp.errors import BrokenMessageError, MissingSegmentError
from nbmp.pickling.arriving import loads
from nbmp.pickling.parcel import unpack

_SHORT = 1024
_GLOBAL = b"\x93"
"""The opcode (STACK_GLOBAL) without which a pickle of ours makes nothing but numbers, text and containers."""


class Message:
    """A message that has arrived and is still pickled: reading it may run the user's code."""

    __slots__ = ("_content", "_owned", "kind")

    def __init__(self, kind: int, content: bytes, owned: list[Any]) -> None:
        self.kind = kind
        self._content = content
        self._owned = owned

    def read(self) -> Any:
        """Return the object. Once only: the message's descriptors are used up."""
        return loads(self._content, self._owned)

    @property
    def is_data(self) -> bool:
        """Whether reading it takes no time and runs nobody's code: it is short and names no class or function."""
        return len(self._content) < _SHORT and not self._owned and _GLOBAL not in self._content

    @property
    def is_broken(self) -> bool:
        """Whether it is no message: something else wrote to the sender's descriptor."""
        return False

    def bytes(self) -> memoryview:
        """Return what was packed, unread. Once only."""
        return memoryview(unpack(self._content, self._owned)[0])


class Unreadable(Message):
    """A message whose memory was taken away, or that is none: whoever reads it is told."""

    __slots__ = ("_error", "_reason")

    def __init__(self, kind: int, error: MissingSegmentError | BrokenMessageError) -> None:
        super().__init__(kind, b"", [])
        self._error, self._reason = type(error), str(error)  # not itself: its traceback has descriptors

    @property
    def is_broken(self) -> bool:
        return issubclass(self._error, BrokenMessageError)

    def read(self) -> Any:
        raise self._error(self._reason)

    def bytes(self) -> memoryview:
        raise self._error(self._reason)
