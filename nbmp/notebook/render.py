"""A snapshot of a launch as HTML that needs nothing but itself.

It must look right in JupyterLab, light and dark, in VS Code and Colab, narrow and wide, live in a widget and
saved as an output. So: colours come from the front end's variables where it has any, chip colours are mixed
with the text colour of the place, and one `<style>` is scoped by a class. Where styles are thrown away
(GitHub) a plain table stays."""

from html import escape

from nbmp.monitoring.snapshots import LaunchSnapshot, RankSnapshot, clock, duration, ranks_text, share, size

TINTS = {
    "starting": "#b8860b",
    "running": "#1a73e8",
    "done": "#188038",
    "failed": "#d93025",
    "stopped": "#80868b",
}

# The class is doubled where a front end's own rules for tables must be outweighed.
STYLE = """<style>
.nbmp-ranks{--line:var(--jp-border-color2,var(--vscode-panel-border,rgba(128,128,128,.35)));
 --soft:var(--jp-ui-font-color2,var(--vscode-descriptionForeground,currentColor));
 color:var(--jp-ui-font-color1,var(--vscode-editor-foreground,inherit));
 font:13px/1.45 var(--jp-ui-font-family,system-ui,sans-serif);font-variant-numeric:tabular-nums;
 border:1px solid var(--line);border-radius:8px;overflow:hidden;margin:2px 0;
 max-width:1120px;container-type:inline-size}
.nbmp-ranks .head{display:flex;flex-wrap:wrap;gap:4px 12px;align-items:center;padding:6px 10px;
 background:var(--jp-layout-color2,rgba(128,128,128,.1))}
.nbmp-ranks .head b{font-size:14px;white-space:nowrap}
.nbmp-ranks .why{color:var(--soft);flex:1 1 0;min-width:90px;overflow:hidden;
 text-overflow:ellipsis;white-space:nowrap}
.nbmp-ranks .chips{display:flex;flex-wrap:wrap;gap:4px 6px}
.nbmp-ranks .chip{display:inline-block;border-radius:10px;padding:0 9px;font-size:12px;line-height:20px;
 white-space:nowrap;background:rgba(128,128,128,.16)}
.nbmp-ranks .rows{overflow-x:auto}
.nbmp-ranks.nbmp-ranks table{border-collapse:collapse;width:100%;margin:0;border:0;font-size:13px;
 color:inherit;table-layout:auto}
.nbmp-ranks.nbmp-ranks tr:nth-child(n){background:none}
.nbmp-ranks.nbmp-ranks th,.nbmp-ranks.nbmp-ranks td{padding:4px 10px;text-align:left;white-space:nowrap;
 border:0;border-top:1px solid var(--line);color:inherit;max-width:none;vertical-align:middle}
.nbmp-ranks.nbmp-ranks th{font-weight:500;font-size:12px;color:var(--soft)}
.nbmp-ranks.nbmp-ranks .r{text-align:right}
.nbmp-ranks.nbmp-ranks td.last{width:100%;max-width:0;min-width:8em;overflow:hidden;text-overflow:ellipsis;
 color:var(--soft);font-size:12px;font-family:var(--jp-code-font-family,ui-monospace,monospace)}
TINTED@container (max-width:520px){.nbmp-ranks .cpu,.nbmp-ranks .wide{display:none}
 .nbmp-ranks.nbmp-ranks th,.nbmp-ranks.nbmp-ranks td{padding:4px 6px}}
</style>""".replace(
    "TINTED",
    "".join(
        f".nbmp-ranks .{group}{{background:color-mix(in srgb,{tint} 20%,transparent);"
        f"color:color-mix(in srgb,{tint} 58%,currentColor)}}\n"
        for group, tint in TINTS.items()
    ),
)

HEAD = (
    '<tr><th>rank</th><th>state</th><th class="r">time</th><th class="r cpu">CPU</th>'
    '<th class="r">memory<span class="wide"> (PSS)</span></th><th>last line</th></tr>'
)


def html_table(snapshot: LaunchSnapshot) -> str:
    """Return the snapshot as HTML; text of the ranks is escaped."""
    rows = "\n".join(map(_row, snapshot.ranks))
    return (
        f'{STYLE}\n<div class="nbmp-ranks">\n{_header(snapshot)}\n'
        f'<div class="rows"><table><thead>{HEAD}</thead><tbody>\n{rows}\n</tbody></table></div>\n</div>'
    )


def _header(snapshot: LaunchSnapshot) -> str:
    why = " · ".join(text for text in (snapshot.start_method, snapshot.start_method_reason) if text)
    chips = " ".join(_chip(group, f"{count} {group}") for group, count in snapshot.counts.items())
    return (
        f'<div class="head"><b>{ranks_text(snapshot)}</b> '
        f'<span class="why" title="{escape(why)}">{escape(why)}</span> '
        f'<span>{clock(snapshot.seconds)}</span> <span class="chips">{chips}</span></div>'
    )


def _chip(group: str, text: str) -> str:
    return f'<span class="chip {group}">{escape(text)}</span>'


def _row(rank: RankSnapshot) -> str:
    remark = escape(rank.remark[:300])
    return (
        f'<tr><td title="pid {rank.pid}">{rank.rank}</td><td>{_chip(rank.group, rank.label)}</td>'
        f'<td class="r">{duration(rank)}</td><td class="r cpu">{share(rank.cpu)}</td>'
        f'<td class="r">{size(rank.memory)}</td><td class="last" title="{remark}">{remark}</td></tr>'
    )
