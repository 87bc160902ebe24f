"""A snapshot of a launch as HTML: complete, for saving, and in the parts that a live table is made of."""

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field

from nbmp.monitoring.snapshots import GROUPS, LaunchSnapshot, RankSnapshot, launch_clock, ranks_text
from nbmp.notebook.live.ansi import html
from nbmp.notebook.live.style import STYLE, chips, headline, table
from nbmp.notebook.ranks import tiles
from nbmp.notebook.ranks.columns import Column, chosen
from nbmp.notebook.ranks.stackview import error_html
from nbmp.notebook.ranks.style import FIRST_ROW, RANK_STYLE, switches


@dataclass(frozen=True)
class Extras:
    """What somebody has asked for, on top of a snapshot."""

    told_by: str = ""
    """Code for all that a rank has written, `nbmp.output(RANK)`; empty when there is none."""
    shown: frozenset[int] | None = None
    """The ranks to be shown; None: all."""
    stacks: Mapping[int, str] = field(default_factory=dict)
    """Where ranks are, as HTML, by rank."""
    where: str = ""
    """The same of all ranks."""


NOTHING = Extras()

USUAL = "fork"
"""How ranks are started, if nothing speaks against it."""


def html_table(snapshot: LaunchSnapshot, extras: Extras = NOTHING) -> str:
    """Return the snapshot as HTML that needs nothing but itself; text of the ranks is escaped.

    What a rank has written is folded below its row, also where styles are thrown away.
    """
    columns = chosen(snapshot)
    many = is_many(snapshot)

    unfolded = told_once(snapshot.ranks)

    def rows_of(ranks: Iterable[RankSnapshot]) -> str:
        rows = [_frozen_row(rank, snapshot.kind, columns, extras, is_open=rank.rank in unfolded) for rank in ranks]
        return table(_heads(columns, snapshot.kind), rows) if rows else ""

    if many:
        shown = tiles.worth_a_row(snapshot)
        first, others = ([rank for rank in snapshot.ranks if (rank.rank in shown) is is_in] for is_in in (True, False))
        folded = f'<details class="all"><summary>{"the others" if first else "all"}, one by one</summary>'
        folded += f'<div class="tall">{rows_of(others)}</div></details>'
        rows = f"{tiles.overview(snapshot, is_live=False)}{rows_of(first)}{folded}"
    else:
        rows = rows_of(snapshot.ranks)
    line = f'<div class="head">{live_head(snapshot)}</div>'
    return f'{STYLE}{RANK_STYLE}\n<div class="nbmp nbmp-ranks frozen">{line}\n{rows}</div>'


def is_many(snapshot: LaunchSnapshot) -> bool:
    """Return whether there are too many ranks to show a row of each while they run."""
    return len(snapshot.ranks) > tiles.MANY


def live_style(key: str, snapshot: LaunchSnapshot) -> str:
    """Return the part that is never replaced."""
    ranks = [rank.rank for rank in snapshot.ranks]
    return STYLE + RANK_STYLE + switches(key, ranks, GROUPS, many=is_many(snapshot))


def live_head(snapshot: LaunchSnapshot) -> str:
    """Return what is in the head's box, beside its buttons."""
    method, reason = snapshot.start_method, snapshot.start_method_reason
    told = f"{method} · {reason}" if reason else method
    why = method if method == USUAL else told  # why it is not the usual one is worth a line
    counts = chips((group, f"{count} {group}") for group, count in snapshot.counts.items())
    return headline(ranks_text(snapshot), why, launch_clock(snapshot), counts, tip=f"how they were started: {told}")


def live_rows(snapshot: LaunchSnapshot, key: str, extras: Extras = NOTHING) -> str:
    """Return the table, for a grid with the class `key`, in which its cells lie beside the buttons."""
    columns = chosen(snapshot)
    grid = f"repeat({len(columns) - 1},auto) minmax(3em,1fr) auto auto"
    parts = [f"<style>.{key}{{grid-template-columns:{grid}}}</style>"]
    if extras.where:
        parts.append(f'<div class="wherebox">{extras.where}</div>')
    many = is_many(snapshot)
    if many:
        parts.append(tiles.overview(snapshot, is_live=True))
    heads = "" if many else _heads(columns, snapshot.kind).replace("</tr>", '<th class="act"></th></tr>')
    shown = tiles.worth_a_row(snapshot) if many and extras.shown is None else extras.shown
    unfolded = told_once(snapshot.ranks)
    rows = (
        _live_row(
            rank,
            place,
            columns,
            extras,
            number=many,
            is_shown=shown is None or rank.rank in shown,
            is_open=rank.rank in unfolded,
        )
        for place, rank in enumerate(snapshot.ranks)
    )
    return "".join(parts) + table(heads, rows)


def _heads(columns: Iterable[Column], kind: str) -> str:
    first, *others = columns
    return f"<tr>{first.th(kind)}{''.join(column.th() for column in others)}</tr>"


def told_once(ranks: Iterable[RankSnapshot]) -> frozenset[int]:
    """Return the ranks whose error is to be seen unasked: of those that failed of the same thing, the first by time."""
    failed = [(rank.error, rank.rank) for rank in ranks if rank.error is not None]
    firsts: dict[Hashable, int] = {}
    for error, number in sorted(failed, key=lambda one: one[0].when):
        firsts.setdefault(error.kind(), number)
    return frozenset(firsts.values())


def _frozen_row(rank: RankSnapshot, kind: str, columns: list[Column], extras: Extras, *, is_open: bool) -> str:
    cells = "".join(column.td(rank) for column in columns)
    folded = _error(rank) + _tail(rank, extras)
    unfolded = " open" if is_open else ""
    return (
        f'<tr>{cells}</tr>\n<tr class="fold"><td colspan="{len(columns)}" style="text-align:left"><details{unfolded}>'
        f"<summary>{kind} {rank.rank}: {_count(rank)}</summary>{folded}</details></td></tr>"
    )


def _live_row(
    rank: RankSnapshot,
    place: int,
    columns: list[Column],
    extras: Extras,
    *,
    number: bool,
    is_shown: bool,
    is_open: bool,
) -> str:
    error, tail = _error(rank), _tail(rank, extras)
    if not is_open:
        error, tail = "", error + tail
    # its number is on the label that lies over the cell, unless there are tiles
    cells = f'<td class="n" title="pid {rank.pid}">{rank.rank if number else ""}</td>'
    cells += "".join(column.td(rank) for column in columns[1:])
    kinds = f"k{rank.rank} is-{rank.group}{' shown' if is_shown else ''}"
    at = FIRST_ROW + 2 * place
    folded = error + extras.stacks.get(rank.rank, "") + f'<div class="tail">{tail}</div>'
    below = f'<tr class="fold {kinds}" style="--r:{at + 1}"><td>{folded}</td></tr>'
    return f'<tr class="rank {kinds}" style="--r:{at}">{cells}<td class="act"></td></tr>{below}'


def _error(rank: RankSnapshot) -> str:
    return error_html(rank.error) if rank.error is not None else ""


def _tail(rank: RankSnapshot, extras: Extras) -> str:
    text = f"<pre>{html(chr(10).join(rank.tail))}</pre>" if rank.tail else ""
    code = extras.told_by.replace("RANK", str(rank.rank))
    more = f", all of them: {code}" if code and rank.lines > len(rank.tail) else ""
    return f'{text}<div class="count">pid {rank.pid}, {_count(rank)}{more}</div>'


def _count(rank: RankSnapshot) -> str:
    if not rank.lines:
        return "no output" if rank.state in _ENDED else "no output so far"
    return f"{rank.lines:,} line{'' if rank.lines == 1 else 's'}{'' if rank.state in _ENDED else ' so far'}"


_ENDED = ("done", "raised", "exited", "killed", "stopped")
