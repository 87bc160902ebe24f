"""What crosses between a pool and one worker, on two channels.

    pool                                                   worker
      functions:  first the initializer (not under fork:   ──>  taken when a chunk wants a function it lacks
                  inherited), then each call's function
      tasks:      CALL, MAP, STARMAP; STOP                 ──>  taken one at a time
                                                           <──  READY or BROKEN once, then RETURNED or RAISED for each

Functions have a channel of their own so that the pool may take a task back that its worker has not taken: the kernel
gives a message to one of the two, and no function is lost with it.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from nbmp.channels import Channel
from nbmp.pickling.luggage import current_luggage

CALL, MAP, STARMAP, STOP, READY, BROKEN, RETURNED, RAISED = range(8)

KINDS = 4
"""Of those so many are sent to a worker. A task's kind travels as `kind + KINDS * (n % NUMBERS)`, `n` counted for each
worker: so a task is known again."""
NUMBERS = 64
FUNCTION_NUMBER, FUNCTION = 0, 1
"""A function travels in two messages, its number first, which may come more than once."""


class Call(NamedTuple):
    """One call. The field names are what an error about pickling shows."""

    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwds: dict[str, Any]


class Chunk(NamedTuple):
    """Some items for one function, which travels apart."""

    function: int
    items: list[Any]


class Initializer(NamedTuple):
    """What a worker calls first."""

    initializer: Callable[..., Any] | None
    initargs: tuple[Any, ...]


class WorkerEnds:
    """A worker's ends of its two channels: inherited by a fork, otherwise part of its task."""

    def __init__(self, tasks: Channel, functions: Channel) -> None:
        self.tasks = tasks
        self.functions = functions

    def close(self) -> None:
        self.tasks.close()
        self.functions.close()

    def __reduce__(self) -> tuple[Any, ...]:
        luggage = current_luggage(self)
        return _arrive, tuple(
            luggage.DupFd(luggage.duplicate_for_child(end.fileno())) for end in (self.tasks, self.functions)
        )


def _arrive(tasks: Any, functions: Any) -> WorkerEnds:
    return WorkerEnds(Channel.of_fd(tasks.detach()), Channel.of_fd(functions.detach()))
