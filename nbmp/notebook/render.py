"""A snapshot of a launch as HTML that needs nothing but itself."""

from html import escape

from nbmp.monitoring.snapshots import LaunchSnapshot, RankSnapshot, clock, duration, ranks_text, share, size
from nbmp.notebook.style import block, chip, chips, head, table

HEAD = (
    '<tr><th>rank</th><th>state</th><th class="r">time</th><th class="r wide">CPU</th>'
    '<th class="r">memory<span class="wide"> (PSS)</span></th><th>last line</th></tr>'
)


def html_table(snapshot: LaunchSnapshot) -> str:
    """Return the snapshot as HTML; text of the ranks is escaped."""
    return block("nbmp-ranks", _header(snapshot), table(HEAD, map(_row, snapshot.ranks)))


def _header(snapshot: LaunchSnapshot) -> str:
    why = " · ".join(text for text in (snapshot.start_method, snapshot.start_method_reason) if text)
    counts = chips((group, f"{count} {group}") for group, count in snapshot.counts.items())
    return head(ranks_text(snapshot), why, clock(snapshot.seconds), counts)


def _row(rank: RankSnapshot) -> str:
    remark = escape(rank.remark[:300])
    return (
        f'<tr><td title="pid {rank.pid}">{rank.rank}</td><td>{chip(rank.group, rank.label)}</td>'
        f'<td class="r">{duration(rank)}</td><td class="r wide">{share(rank.cpu)}</td>'
        f'<td class="r">{size(rank.memory)}</td><td class="last" title="{remark}">{remark}</td></tr>'
    )
