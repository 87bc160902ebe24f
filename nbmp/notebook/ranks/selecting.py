"""Which of many ranks somebody means: numbers, or a word of what is shown of them."""

import re

from nbmp.monitoring.snapshots import LaunchSnapshot, RankSnapshot

_NUMBERS = re.compile(r"(\d+)(?:\s*[-\N{EN DASH}:]\s*(\d+))?")
_ONLY_NUMBERS = re.compile(r"[\s\d,;:\N{EN DASH}-]+")


def selected(text: str, snapshot: LaunchSnapshot) -> frozenset[int] | None:
    """Return the ranks that a text means, None for all (an empty text).

    `3 8-11` are numbers; anything else is looked for in state, error and last lines, whatever the case.
    """
    text = text.strip()
    if not text:
        return None
    if _ONLY_NUMBERS.fullmatch(text):
        runs = [(int(first), int(last or first)) for first, last in _NUMBERS.findall(text)]
        return frozenset(rank.rank for rank in snapshot.ranks if any(low <= rank.rank <= high for low, high in runs))
    word = text.lower()
    return frozenset(rank.rank for rank in snapshot.ranks if word in _words(rank))


def _words(rank: RankSnapshot) -> str:
    return "\n".join((rank.group, rank.label, rank.failure, rank.remark, *rank.tail)).lower()
