"""The launch that was started last, for whoever has no name for it."""

from typing import TYPE_CHECKING
from weakref import ref

from nbmp.launching.private import in_forked_child

if TYPE_CHECKING:
    from nbmp.launching.context import ProcessContext

_last: "ref[ProcessContext] | None" = None
_kept: "ProcessContext | None" = None


def last_launch() -> "ProcessContext | None":
    """Return the context of the launch that was started last in this process, also by `launch` and `%%mpspawn`.

    A notebook keeps it until the next launch, so that what its ranks wrote, and how they ended, can be looked at:
    `nbmp.last_launch().output(2)`. Results that `launch` or `%%mpspawn` gave to the caller are not kept here as well.
    Elsewhere it lives as long as its ranks, or a variable that holds it. Ranks end no earlier or later for it.

    Returns
    -------
    ProcessContext or None
        None when nothing was launched yet, or when it is gone. In a rank: of the launches that the rank started.
    """
    return None if _last is None else _last()


def remember(context: "ProcessContext") -> None:
    """This is the last one from now on."""
    global _last, _kept
    _last, _kept = ref(context), None


def keep(context: "ProcessContext") -> None:
    """Keep it until the next one comes."""
    global _kept
    _kept = context


def _forget() -> None:
    global _last, _kept
    _last = _kept = None


in_forked_child(_forget)
