"""A view of shared memory as HTML that needs nothing but itself; the look is `style`'s."""

from html import escape

from nbmp.monitoring.memory.rows import ARRAY, ELSEWHERE, KEPT, MESSAGE, UNNAMED, MemoryRow
from nbmp.monitoring.memory.text import NOTHING, amounts, divided, name, places
from nbmp.monitoring.memory.view import MemoryView
from nbmp.monitoring.snapshots import size
from nbmp.notebook.live.style import block, headline, table

USED, CACHED, OTHERS, FREE = "#4c8bf5", "#b9a2f2", "rgba(128,128,128,.45)", "rgba(128,128,128,.16)"
"""Colours of bars: shared memory in use, what is kept of it, what anybody else takes, what nobody does."""

# What only this picture needs.
RULES = """<style>
.nbmp .meter{display:flex;height:5px}
.nbmp .meter i{display:block;height:100%}
.nbmp .key{display:inline-block;width:8px;height:8px;border-radius:2px;margin-right:4px;
 box-shadow:inset 0 0 0 1px rgba(128,128,128,.6)}
.nbmp .note{padding:5px 10px;border-top:1px solid var(--line);font-size:12px}
.nbmp.nbmp td.soft,.nbmp.nbmp .note.soft{color:var(--soft)}
.nbmp.nbmp td.name{max-width:19em;overflow:hidden;text-overflow:ellipsis;font-family:var(--code);font-size:12px}
.nbmp.nbmp td.who{max-width:17em;overflow:hidden;text-overflow:ellipsis}
.nbmp .extra{color:var(--soft);font-family:var(--jp-ui-font-family,system-ui,sans-serif)}
.nbmp.nbmp.nbmp-moves{display:block;width:auto;padding:0}
.nbmp-moves>.head{display:flex;width:auto;margin:0}
.nbmp-moves>.widget-html,.nbmp-moves>.widget-html>.widget-html-content{display:block;margin:0;width:auto;height:auto;
 min-width:0;line-height:inherit;font-size:inherit}
.nbmp.nbmp .nbmp-hidden{display:none}
@container (max-width:760px){.nbmp.nbmp td.name{max-width:12em}
 .nbmp.nbmp td.what,.nbmp.nbmp td.who{white-space:normal;min-width:6em}
 .nbmp.nbmp-memory .bar{width:60px}.nbmp .spare{display:none}}
@container (max-width:520px){.nbmp.nbmp td.name{max-width:9em}}
</style>"""

NAME = "nbmp-memory"

TOLD = {
    UNNAMED: "held by what is no variable of the notebook: an object, a closure, the traceback of an error",
    ELSEWHERE: "made by ranks or workers for themselves",
    MESSAGE: "put into a queue or pipe, and not received yet",
    KEPT: "used again by the next messages, given back after some seconds",
}
"""What a person is told who points at a row."""

IN_ALL = "in use: whole pages, with what nbmp itself needs to follow ranks, so it may be more than the rows together"

METER = "all memory of the machine or container: shared, in use; shared, cached; taken by anybody else; free"

HEAD = (
    '<tr><th>name</th><th>shape</th><th class="spare">dtype</th><th class="r">bytes</th><th class="wide">made in</th>'
    '<th title="who can reach it: a forked rank has mapped all that there was when it was forked">mapped by</th>'
    '<th class="wide" title="how much of it takes memory: pages are taken as they are written to">taken</th></tr>'
)


def html_view(view: MemoryView, rows: int | None, state: str) -> str:
    """Return the view as HTML; names are escaped. `state` says in a word or two of when it is."""
    return RULES + block(NAME, f'<div class="head">{headline_of(view, state)}</div>', body_of(view, rows))


def headline_of(view: MemoryView, state: str) -> str:
    """Return what is in its head line."""
    parts = [f'<span title="{IN_ALL}">{_amounts(view)}</span>']
    if state:
        parts.append(f'<span class="soft">{escape(state)}</span>')
    return headline("Shared memory", view.strategy, *parts)


def _amounts(view: MemoryView) -> str:
    """Return the totals, each with its colour in the bar."""
    pairs = zip((USED, CACHED, FREE), amounts(view), strict=True)
    return " · ".join(f'<i class="key" style="background:{colour}"></i>{escape(text)}' for colour, text in pairs)


def body_of(view: MemoryView, rows: int | None) -> str:
    """Return what is below the head."""
    shown, rest = divided(view, rows)
    body = [_meter(view)]
    if shown:
        most = max(row.bytes for row in shown) or 1
        body.append(table(HEAD, [_row(row, most) for row in shown]))
    elif not rest:
        body.append(f'<div class="note soft">{escape(NOTHING)}</div>')
    if rest:
        body.append(f'<div class="note soft">{escape(rest)}</div>')
    body += [f'<div class="note soft">{escape(place)}</div>' for place in places(view)]
    body += [f'<div class="note waiting">{escape(remark)}</div>' for remark in view.remarks]
    return "\n".join(body)


def _meter(view: MemoryView) -> str:
    """Return a thin bar of all memory."""
    usage, limit = view.usage, view.room.limit or 1
    others = max(0, view.room.used - usage.in_use - usage.cached)
    parts = [
        (usage.in_use, USED, "shared, in use"),
        (usage.cached, CACHED, "shared, cached"),
        (others, OTHERS, "other"),
    ]
    bars = "".join(
        f'<i title="{text}: {size(part)} of {size(limit)}" style="width:{min(100, 100 * part / limit):.1f}%;'
        f'background:{colour}"></i>'
        for part, colour, text in parts
        if part
    )
    return f'<div class="meter" style="background:{FREE}" title="{METER}">{bars}</div>'


def _row(row: MemoryRow, most: int) -> str:
    called, more = name(row)
    extra = f' <span class="extra">{escape(more)}</span>' if more else ""
    if row.kind == ARRAY:
        names = f'<td class="name" title="{escape(", ".join(row.names))}">{escape(called)}{extra}</td>'
    else:
        names = f'<td class="soft what" title="{escape(TOLD.get(row.kind, ""))}">{escape(called)}{extra}</td>'
    shape = "" if row.shape is None else str(row.shape)
    who = escape(row.mapped_by)
    return (
        f'<tr>{names}<td>{shape}</td><td class="spare">{escape(row.dtype)}</td><td class="r">{size(row.bytes)}</td>'
        f'<td class="wide">{escape(row.made_in)}</td><td class="who" title="{who}">{who}</td>'
        f'<td class="wide">{_bar(row, most)}</td></tr>'
    )


def _bar(row: MemoryRow, most: int) -> str:
    """Return a bar as long as the row has bytes; what of them takes memory so far is dark."""
    written = 100 * row.taken / row.bytes if row.bytes else 0
    pale = f"color-mix(in srgb,{USED} 35%,transparent)"
    told = f"{size(row.taken)} of {size(row.bytes)} take memory: pages are taken as they are written to"
    return (
        f'<span class="bar" title="{told}"><i style="width:{100 * row.bytes / most:.1f}%;'
        f'background:linear-gradient(90deg,{USED} {written:.0f}%,{pale} {written:.0f}%)"></i></span>'
    )
