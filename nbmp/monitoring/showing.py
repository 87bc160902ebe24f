"""`nbmp.monitor`: the table of ranks, once more and wherever one is."""

from typing import Any, cast

from nbmp.launching import frontends, registry
from nbmp.launching.last import last_launch
from nbmp.launching.registry import Group
from nbmp.monitoring.sampling import Sampler
from nbmp.monitoring.table import text_table


def monitor(launch: Any = None) -> None:
    """Show the ranks of a launch, or the workers of a pool, in a table: below this cell, moving, with buttons.

    Where there is no notebook, the table as it is now is printed. Returns at once.

    Parameters
    ----------
    launch : ProcessContext, Pool or ProcessPoolExecutor, optional
        None: the launch that was started last.

    Raises
    ------
    TypeError
        When it is something else.
    """
    group = last_launch() if launch is None else group_of(launch)
    if group is None:
        print("no ranks were started yet")
    elif not frontends.current().monitor(group):
        print(table_now(group))


def table_now(launch: Any) -> str:
    """Return the table of a launch or pool as it is now, as lines of text."""
    return text_table(Sampler(group_of(launch)).snapshot())


def group_of(value: Any) -> Group:
    """Return the launch or pool that an object of the user's is; TypeError when it is none."""
    for found in (value, getattr(value, "_workers", None), getattr(value, "_launch", None)):
        if getattr(type(found), "kind", None) in registry.KINDS:
            return cast(Group, found)
    raise TypeError(f"a launch or a pool is needed, not {type(value).__name__}")
