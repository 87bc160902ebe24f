"""What launches and pools are called in a notebook: by the variables that hold them."""

import sys
from collections.abc import Sequence
from typing import Any, NamedTuple, cast

from nbmp.launching import registry
from nbmp.launching.registry import Group
from nbmp.notebook.magics.parsing import Parser, any_of, did_you_mean


class Chosen(NamedTuple):
    """A launch or pool that was named."""

    name: str
    group: Group
    ranks: list[int] | None
    """None: all of them."""


def names(shell: Any) -> dict[int, str]:
    """Return the names of launches and pools that variables hold, by their numbers."""
    found = _held(shell)
    return {group.number: name for name, group in reversed(found.items()) if group.number}


def name_of(shell: Any, group: Group) -> str:
    """Return what it is called: as its user called it, by a variable that holds it, or `launch-3`."""
    return _called(group, names(shell))


def called(shell: Any) -> list[str]:
    """Return what those that run are called."""
    own = names(shell)
    return [_called(group, own) for group in registry.running()]


def chosen(shell: Any, words: Sequence[str], parser: Parser) -> list[Chosen]:
    """Return what `[name ...] [rank ...]` stand for; without a name, all that runs.

    UsageError when there is no such name, or rank; and when there are ranks but several launches run and none is named.
    """
    ranks = [int(word) for word in words if word.isdecimal()] or None
    wanted = [word for word in words if not word.isdecimal()]
    own = names(shell)
    running = {_called(group, own): group for group in registry.running()}
    known = {**running, **{registry.title(group): group for group in registry.running()}, **_held(shell)}
    for word in wanted:
        if word not in known:
            raise parser.wrong(f"there is no launch called {word!r}{did_you_mean(word, known) or _there_are(running)}")
    found = {word: known[word] for word in wanted} if wanted else running
    if ranks and len(found) > 1:
        raise parser.wrong(f"rank {ranks[0]} of which launch? Write its name first: {any_of(found)}")
    for group in found.values():
        there = [record.shown_as for record in group.ranks]
        for rank in ranks or ():
            if rank not in there:
                raise parser.wrong(f"{group.kind} {next(iter(found))} has no rank {rank}{_numbers(there)}")
    return [Chosen(name, group, ranks) for name, group in found.items()]


def _held(shell: Any) -> dict[str, Group]:
    """Return the launches and pools that variables of the notebook hold, by name; not what IPython keeps of outputs."""
    ours = tuple(getattr(sys.modules[module], kind) for module, kind in _HOLDERS.items() if module in sys.modules)
    found: dict[str, Group] = {}
    for name, value in list(shell.user_ns.items()):
        if not name.startswith("_") and issubclass(type(value), ours):  # no code of the user's is run by that
            group = getattr(value, "_workers", None) or getattr(value, "_launch", None) or value  # of Pool, of Process
            if getattr(type(group), "kind", None) in registry.KINDS:
                found[name] = cast(Group, group)
    return found


_HOLDERS = {
    "nbmp.launching.context": "ProcessContext",
    "nbmp.pool": "Pool",
    "nbmp.executor": "ProcessPoolExecutor",
    "nbmp.process": "Process",
}
"""What is a launch, or holds one, or a pool's workers; modules that are not loaded have made none."""


def _called(group: Group, own: dict[int, str]) -> str:
    return group.name or own.get(group.number) or registry.title(group)


def _there_are(running: dict[str, Group]) -> str:
    return f"; {any_of(running)} run{'s' if len(running) == 1 else ''}" if running else "; none runs"


def _numbers(there: Sequence[int]) -> str:
    return f": they are numbered {min(there)} to {max(there)}" if there else ": it has none"
