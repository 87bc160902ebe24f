"""What the ranks of past launches wrote, for whoever asks later: `nbmp.output`.

By number, the last `MOST_LAUNCHES` of them and about `MOST_BYTES` at most. Nothing else of a launch is kept with it.
"""

from collections import OrderedDict
from typing import TYPE_CHECKING

from nbmp.launching.kept import KeptOutput
from nbmp.launching.private import in_forked_child

if TYPE_CHECKING:
    from nbmp.launching.context import ProcessContext

MOST_LAUNCHES = 100
MOST_BYTES = 64 << 20

_kept: "OrderedDict[int, dict[int, KeptOutput]]" = OrderedDict()


def output(rank: int, launch: int | None = None) -> str:
    """Return what a rank has written so far: stdout and stderr in the order in which they were read.

    Parameters
    ----------
    rank
    launch
        Number of a launch, as the notebook says it where it holds lines back; None: the last one. Those that have ended
        are remembered too, until newer ones need the room (64 MB, 100 launches).

    Raises
    ------
    LookupError
        When there is no such launch (any more), or no such rank in it.
    """
    if launch is None and not _kept:
        raise LookupError("nothing was launched yet")
    if launch is None:
        launch = next(reversed(_kept))
    if launch not in _kept:
        raise LookupError(f"nothing is kept of a launch {launch}: kept are {', '.join(map(str, _kept)) or 'none'}")
    ranks = _kept[launch]
    if rank not in ranks:
        raise LookupError(f"there is no rank {rank} in launch {launch}: they are numbered 0 to {len(ranks) - 1}")
    return ranks[rank].text()


def remember(context: "ProcessContext") -> None:
    """Keep what its ranks write, from now on."""
    _kept[context.number] = {record.rank: record.output for record in context.ranks}
    while len(_kept) > 1 and (len(_kept) > MOST_LAUNCHES or sum(map(_size, _kept.values())) > MOST_BYTES):
        _kept.popitem(last=False)


def _size(ranks: dict[int, KeptOutput]) -> int:
    return sum(output.size for output in ranks.values())


in_forked_child(_kept.clear)
