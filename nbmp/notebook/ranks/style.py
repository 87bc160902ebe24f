"""The look of the table of ranks, on top of what `style` gives to all.

Two ways to fold a rank. Saved, it is a `<details>` below its row, whose summary lies over the row's first cell. Live,
the table is replaced several times a second: what was open would close, and a click whose button goes down on one
element and up on another is none. So what is clicked lies in `switches`, which is never replaced: a label for each rank
switches a checkbox, and rules look at it. Both work without the kernel.

Live, the cells of the table, the labels and the buttons lie in one grid (`display:contents` down to them), so they are
in line whatever is unfolded. Row `n` of the ranks is row `FIRST_ROW + 2 * n` of the grid; what is unfolded is in the
one below.
"""

from collections.abc import Iterable, Iterator, Sequence

from nbmp.notebook.live.style import TINTS

FIRST_ROW = 5

RANK_STYLE = """<style>
.nbmp .k::before,.nbmp.frozen summary::before{content:"\\25b8";display:inline-block;width:13px;font-size:11px;
 color:var(--soft)}
.nbmp .k{grid-column:1;align-self:center;cursor:pointer;white-space:nowrap;padding:1px 10px 0;
 line-height:20px;z-index:1}
.nbmp .show{margin-left:auto;font-size:12px;color:var(--soft);line-height:19px}
.nbmp .show label{cursor:pointer;margin-left:3px;padding:0 4px;border-radius:4px;text-decoration:underline dotted;
 display:inline}
.nbmp .inputs input{display:none}
.nbmp .inputs .tiles{z-index:1;border-color:transparent}
.nbmp .num{font-size:12px;margin-left:6px}
.nbmp .called{display:inline-block;max-width:14em;overflow:hidden;text-overflow:ellipsis;vertical-align:bottom;
 font-size:12px;margin-left:6px;color:var(--soft)}
.nbmp.nbmp tr.fold>td{padding:0;border:0;white-space:normal}
.nbmp.nbmp pre{margin:0;padding:6px 14px 8px;font:12px/1.45 var(--code);color:inherit;white-space:pre-wrap;
 word-break:normal;overflow-wrap:anywhere;border:0;border-top:1px solid var(--line);
 background:rgba(128,128,128,.06);max-height:340px;
 overflow-y:auto}
.nbmp.nbmp pre.err{border-left:3px solid #d93025;padding-left:11px}
.nbmp.nbmp pre.stack{border-left:3px solid #8430ce;padding-left:11px}
.nbmp.nbmp .count{padding:0 14px 6px;font-size:12px;color:var(--soft);background:rgba(128,128,128,.06)}
.nbmp .ansi-red{color:color-mix(in srgb,#d93025 75%,currentColor)}
.nbmp .ansi-green{color:color-mix(in srgb,#188038 75%,currentColor)}
.nbmp .ansi-yellow{color:color-mix(in srgb,#b8860b 75%,currentColor)}
.nbmp .ansi-blue{color:color-mix(in srgb,#1a73e8 75%,currentColor)}
.nbmp .ansi-magenta{color:color-mix(in srgb,#8430ce 75%,currentColor)}
.nbmp .ansi-cyan{color:color-mix(in srgb,#12858d 75%,currentColor)}
.nbmp .ansi-bold{font-weight:600}
.nbmp .tiles{display:flex;flex-wrap:wrap;align-content:flex-start;gap:3px;padding:6px 10px;
 border-top:1px solid var(--line)}
.nbmp .tile{position:relative;width:28px;height:19px;text-align:center;font-size:11px;line-height:19px;
 border-radius:4px;box-sizing:border-box;white-space:nowrap}
TILES.nbmp label.tile{cursor:pointer;background:none;z-index:1}
.nbmp .tile i{position:absolute;left:0;bottom:0;height:3px;border-radius:0 0 0 4px;background:currentColor;opacity:.55}
.nbmp.nbmp .sum{padding:5px 10px;border-top:1px solid var(--line);color:var(--soft);font-size:12px}
.nbmp.nbmp.frozen .all>summary{position:static;width:auto;height:auto;padding:5px 10px;color:var(--soft);font-size:12px;
 border-top:1px solid var(--line)}
.nbmp.frozen .fold details{position:relative}
.nbmp.frozen summary{position:absolute;bottom:100%;left:0;width:100px;height:29px;padding:5px 0 0 9px;cursor:pointer;
 list-style:none;color:transparent;font-size:0;box-sizing:border-box}
.nbmp.frozen summary::-webkit-details-marker{display:none}
.nbmp.frozen summary::before{line-height:20px}
.nbmp.frozen details[open]>summary::before{content:"\\25be"}
.nbmp.nbmp.frozen .tall{max-height:420px;overflow:auto}
.nbmp.nbmp.frozen td.n{padding-left:22px}.nbmp.nbmp.frozen th.n{padding-left:9px}
.nbmp.nbmp.live{display:grid;overflow:auto hidden;grid-template-rows:auto;align-items:stretch;padding:0;width:auto}
.nbmp.live>.widget-html,.nbmp.live>.widget-html>.widget-html-content,.nbmp.live .rows,.nbmp.live table,
.nbmp.live thead,.nbmp.live tbody,.nbmp.live tr{display:contents}
.nbmp.live>*{min-width:0}
.nbmp.nbmp.live .widget-html-content{line-height:1.45}
.nbmp.live>.head{grid-row:1;grid-column:1/-1;display:flex;margin:0;width:auto}
.nbmp.live .wherebox{grid-row:2;grid-column:1/-1}
.nbmp.live .tiles,.nbmp.live .sum{grid-column:1/-1}.nbmp.live .tiles{grid-row:3}.nbmp.live .sum{grid-row:4}
.nbmp.nbmp.live th{grid-row:4;line-height:14px}
.nbmp.nbmp.live td.n{grid-column:1}
.nbmp.nbmp.live td{grid-row:var(--r);line-height:20px}
.nbmp.nbmp.live th,.nbmp.nbmp.live td{display:block}
.nbmp.nbmp.live tr.fold>td{grid-column:1/-1}
.nbmp.nbmp.live .last{grid-column:-4;max-width:none;width:auto;min-width:0;display:block}
.nbmp.nbmp.live .act{grid-column:-3/-1}
.nbmp.nbmp.live>.widget-button{align-self:center;min-width:max-content;margin:0 10px 0 0;z-index:1}
.nbmp.nbmp.live>.widget-button.where{grid-column:-3;margin-right:6px}
.nbmp.nbmp.live>.widget-button.stop{grid-column:-2}
.nbmp.nbmp.live:not(:has(>.stop))>.widget-button.where{grid-column:-3/-1;justify-self:end;margin-right:10px}
.nbmp.live .tail{display:none}
.nbmp.nbmp.live.many tr.rank:not(.shown),.nbmp.nbmp.live.many tr.fold:not(.shown){display:none}
.nbmp.nbmp .widget-text{height:22px;margin:0}
.nbmp.nbmp .widget-text input{height:22px;padding:0 8px;border:1px solid var(--line);border-radius:6px;font-size:12px;
 background:var(--jp-layout-color1,transparent);color:inherit}
@container (max-width:880px){.nbmp.live .bar{width:60px}.nbmp.nbmp.live .wide{display:none}}
@container (max-width:640px){.nbmp .called{max-width:6em}}
@container (max-width:580px){.nbmp.nbmp .bar{width:60px}.nbmp.live .why,.nbmp.live .num{display:none}
 .nbmp.nbmp.live .wide,.nbmp.nbmp.live th.t,.nbmp.nbmp.live td.t{display:none}.nbmp.nbmp.live .bar{width:48px}
 .nbmp.nbmp.live>.widget-button{margin-right:6px;padding:0 6px}
 .nbmp.nbmp.live>.widget-button.where{margin-right:4px}}
</style>""".replace(
    "TILES",
    "".join(
        f".nbmp .tile.{kind}{{background:color-mix(in srgb,{tint} 36%,transparent)}}\n" for kind, tint in TINTS.items()
    ),
)


def switches(key: str, ranks: Sequence[int], groups: Iterable[str], *, many: bool) -> str:
    """Return the checkboxes of a live table, what switches them, and the rules that look at them.

    They are `<key>-<rank>`, which unfolds a rank, and `<key>-<group>`, which shows all ranks of a group in a table that
    shows only some, as that of `many` does.
    """
    switched = {
        **{str(rank): f"k{rank}" for rank in ranks},
        **({group: f"is-{group}" for group in groups} if many else {}),
    }
    boxes = "".join(f'<input type="checkbox" id="{key}-{name}">' for name in switched)
    rules = [rule for name, kind in switched.items() for rule in _rules(key, name, kind)]
    rules += [f".{key}:has(#{key}-{rank}:checked) .k{rank} .tail{{display:block}}" for rank in ranks]
    rules += [f".{key} .b{rank}{{grid-row:{FIRST_ROW + 2 * place}}}" for place, rank in enumerate(ranks)]
    if many:
        rules += [f".{key}:not(:has(.tile.{group})) label[for={key}-{group}]{{display:none}}" for group in groups]
        tiles = "".join(f'<label class="tile" for="{key}-{rank}" title="rank {rank}">{rank}</label>' for rank in ranks)
        words = "".join(f'<label for="{key}-{group}">{group}</label>' for group in groups)
        labels = f'<div class="tiles">{tiles}<span class="show">show {words}</span></div>'
    else:
        labels = "".join(f'<label class="k b{rank}" for="{key}-{rank}">{rank}</label>' for rank in ranks)
    return f"<style>\n{chr(10).join(rules)}\n</style>{boxes}{labels}"


def _rules(key: str, name: str, kind: str) -> Iterator[str]:
    on = f".{key}:has(#{key}-{name}:checked)"  # an id: outweighs what is said above
    yield f"{on} .{kind}{{display:contents}}"
    yield f'{on} .k[for={key}-{name}]::before{{content:"\\25be"}}'
    yield f"{on} [for={key}-{name}]:not(.k){{outline:2px solid currentColor;outline-offset:-1px}}"
