"""What a view of shared memory says, in words: totals, places, what a row is called; and all of it as lines of text."""

from nbmp.memory.strategy import FILE_DESCRIPTOR, FILE_SYSTEM
from nbmp.monitoring.memory.rows import ARGUMENTS, ARRAY, ELSEWHERE, KEPT, MESSAGE, RECEIVED, UNNAMED, MemoryRow
from nbmp.monitoring.memory.view import MemoryView
from nbmp.monitoring.snapshots import DASH, columns, size

ROWS = 20
"""The largest; the others in one line."""

HEAD = ("name", "shape", "dtype", "bytes", "taken", "made in", "mapped by")

WORDS = {
    UNNAMED: ("array without a name", "arrays without a name"),
    ELSEWHERE: ("array elsewhere only", "arrays elsewhere only"),
    MESSAGE: ("message under way", "messages under way"),
    RECEIVED: ("message received, without a name", "messages received, without a name"),
    ARGUMENTS: ("set of arguments of ranks", "sets of arguments of ranks"),
}


def view_table(view: MemoryView, rows: int | None = ROWS) -> str:
    """Return the view as lines of text, for terminals and saved notebooks; `rows` at most, None: all."""
    shown, rest = divided(view, rows)
    lines = [f"shared memory: {totals(view)}", *places(view)]
    if shown:
        lines.append(columns([HEAD, *map(_cells, shown)], right=(3, 4)))
    elif not rest:
        lines.append(NOTHING)
    lines += [rest] if rest else []
    return "\n".join([*lines, *(f"! {remark}" for remark in view.remarks)])


NOTHING = "no shared arrays: nbmp.zeros(shape), nbmp.share_memory(array) make one"


def divided(view: MemoryView, rows: int | None) -> tuple[list[MemoryRow], str]:
    """Return the rows to show, and a line about the others: arrays are left out, the smallest first."""
    arrays, others = view.arrays, [row for row in view.rows if row.kind != ARRAY]
    if rows is None or len(arrays) <= rows:
        return [*arrays, *others], ""
    left = arrays[rows:]
    number, together = sum(row.number for row in left), size(sum(row.bytes for row in left))
    rest = f"{number} smaller arrays, {together} together" if number > 1 else f"a smaller array, {together}"
    return [*arrays[:rows], *others], f"and {rest}"


def totals(view: MemoryView) -> str:
    """Return `in use 288 MB · cached 64 MB · available 1.6 GB of 2.0 GB (container limit)`."""
    return " · ".join(amounts(view))


def amounts(view: MemoryView) -> list[str]:
    """Return the three of which that consists."""
    usage = view.usage
    parts = [f"in use {size(usage.in_use)}", f"cached {size(usage.cached)}", f"available {size(usage.available)}"]
    if usage.control_group is not None:
        parts[-1] += f" of {size(usage.control_group.limit)} (container limit)"
    return parts


def places(view: MemoryView) -> list[str]:
    """Return a line for each place where segments are: what bounds it, and how full it is."""
    usage, found = view.usage, []
    room = usage.dev_shm
    dev_shm = "/dev/shm" if room is None else f"/dev/shm ({size(room.limit)}, {size(room.used)} used)"
    if view.strategy == FILE_DESCRIPTOR or usage.bytes_of(strategy=FILE_DESCRIPTOR):
        found.append(f"{FILE_DESCRIPTOR}: memory without a name (memfd), not bounded by {dev_shm}")
    if view.strategy == FILE_SYSTEM or usage.bytes_of(strategy=FILE_SYSTEM):
        found.append(f"{FILE_SYSTEM}: files in {dev_shm}")
    return found if view.strategy == FILE_DESCRIPTOR else found[::-1]


def name(row: MemoryRow) -> tuple[str, str]:
    """Return what it is called, and more that is less important."""
    if row.kind == KEPT:
        return "cached", "for the next messages"
    if row.kind != ARRAY:
        one, many = WORDS[row.kind]
        return f"{row.number} {one if row.number == 1 else many}", ""
    first, *rest = row.names
    if row.number > 1:
        return f"{first} … {row.names[-1].removeprefix(first.partition('[')[0])}", f"{row.number} arrays"
    more = ", ".join(rest[:3]) + (f" and {len(rest) - 3} more" if len(rest) > 3 else "")
    return first, f"also {more}" if more else ""


def _cells(row: MemoryRow) -> tuple[str, ...]:
    about = row.shape, row.dtype
    called, more = name(row)
    shape = DASH if row.shape is None else str(row.shape)
    return (
        f"{called} ({more})" if more else called,
        shape,
        about[1] or DASH,
        size(row.bytes),
        size(row.taken),
        row.made_in or DASH,
        row.mapped_by or DASH,
    )
