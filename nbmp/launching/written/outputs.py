"""What ranks wrote, for whoever asks later: `nbmp.output`.

Of launches and processes, by their numbers: the last `MOST_LAUNCHES` of them and about `MOST_BYTES` at most. Nothing
else of a launch is kept with it. Of a pool as long as it runs.
"""

from collections import OrderedDict
from typing import TYPE_CHECKING

from nbmp.launching import registry
from nbmp.launching.private import in_forked_child
from nbmp.launching.written.kept import KeptOutput

if TYPE_CHECKING:
    from nbmp.launching.context import ProcessContext

MOST_LAUNCHES = 100
MOST_BYTES = 64 << 20

_kept: "OrderedDict[int, dict[int, KeptOutput]]" = OrderedDict()
_last = 0
"""Number of the last launch; processes do not count."""


def output(rank: int, launch: int | None = None) -> str:
    """Return what a rank has written so far: stdout and stderr in the order in which they were read.

    Parameters
    ----------
    rank
        Of a pool: the place of a worker.
    launch
        Number of a launch, pool or process, as the notebook says it where it holds lines back; None: the last launch.
        Launches that have ended are remembered too, until newer ones need the room (64 MB, 100 launches).

    Raises
    ------
    LookupError
        When there is no such launch (any more), or no such rank in it.
    """
    if launch is None and not _last:
        raise LookupError("nothing was launched yet")
    number = _last if launch is None else launch
    ranks = _kept.get(number) or _of_running(number)
    if not ranks:
        raise LookupError(f"nothing is kept of a launch {number}: kept are {', '.join(map(str, _kept)) or 'none'}")
    if rank not in ranks:
        raise LookupError(f"there is no rank {rank} in launch {number}: there are {', '.join(map(str, sorted(ranks)))}")
    return ranks[rank].text()


def remember(context: "ProcessContext") -> None:
    """Keep what its ranks write, from now on."""
    global _last
    _kept[context.number] = _by_rank(context)
    if context.kind == "launch":
        _last = context.number
    while len(_kept) > 1 and (len(_kept) > MOST_LAUNCHES or sum(map(_size, _kept.values())) > MOST_BYTES):
        _kept.popitem(last=False)


def _of_running(number: int) -> dict[int, KeptOutput]:
    return next((_by_rank(group) for group in registry.running() if group.number == number), {})


def _by_rank(group: registry.Group) -> dict[int, KeptOutput]:
    return {record.streams[0].rank: record.output for record in group.ranks}


def _size(ranks: dict[int, KeptOutput]) -> int:
    return sum(output.size for output in ranks.values())


def _forget() -> None:
    global _last
    _last = 0
    _kept.clear()


in_forked_child(_forget)
