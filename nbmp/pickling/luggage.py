"""What a pickle leaves behind itself while it is made: large buffers, and descriptors that travel along."""

import os
import pickle
from multiprocessing.context import get_spawning_popen
from typing import TYPE_CHECKING, Any

from nbmp.memory.descriptors import made
from nbmp.pickling.arriving import TravellingFd
from nbmp.pickling.parcel import FdOwner, Held

if TYPE_CHECKING:
    from nbmp.memory.strategy import AnySegment


class Luggage:
    """Collected by one pickler.

    It also stands in for what the standard library calls a popen object: while one is set, its connections, locks and
    queues hand out their descriptors through it instead of a helper thread.
    """

    __slots__ = ("_indices", "buffers", "farewell", "notes", "owners", "to_main")
    DupFd = TravellingFd

    def __init__(self, to_main: bool = False, farewell: bool = False) -> None:
        """See `nbmp.pickling.leaving.dumps` for the two."""
        self.to_main = to_main
        self.farewell = farewell
        self.notes: dict[Any, Any] = {}
        """What reducers remember while this one pickle is made."""
        self.buffers: list[pickle.PickleBuffer] = []
        self.owners: list[FdOwner] = []
        self._indices: dict[Any, int] = {}

    def take_buffer(self, buffer: pickle.PickleBuffer) -> bool:
        """Take an out-of-band buffer; True (leave it in the pickle) for one that is not contiguous."""
        try:
            buffer.raw()
        except BufferError:
            return True
        self.buffers.append(buffer)
        return False

    def index_of(self, key: Any, segment: "AnySegment") -> int:
        """Return the number of a segment among what travels along."""
        index = self._indices.get(key)
        if index is None:
            index = self._indices[key] = len(self.owners)
            self.owners.append(segment)
        return index

    def add(self, owner: FdOwner) -> int:
        """Take a descriptor along; return its number."""
        self.owners.append(owner)
        return len(self.owners) - 1

    def duplicate_for_child(self, fd: int) -> int:
        """Take a duplicate of somebody's descriptor; return its number."""
        return self.add(Held(made(os.dup, fd)))


def current_luggage(obj: object) -> Luggage:
    """Return the luggage of the pickling that `obj` is part of.

    Raises
    ------
    RuntimeError
        When it is pickled by somebody else, who would not take its descriptors along.
    """
    luggage = get_spawning_popen()
    if luggage is None:
        raise RuntimeError(
            f"a {type(obj).__name__} can be given to another process, as an argument or through a queue, but not "
            "be pickled otherwise"
        )
    return luggage  # type: ignore[return-value]  # or the standard library's, which has the same two names
