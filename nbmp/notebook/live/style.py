"""The look that everything nbmp shows in a notebook has in common: one `<style>`, and the pieces that it dresses.

It must look right in JupyterLab, light and dark, in VS Code and Colab, narrow and wide, live in a widget and saved as
an output. So: colours come from the front end's variables where it has any, those of chips are mixed with the text
colour of the place, and all rules are scoped by one class. Where styles are thrown away (GitHub) plain text and plain
tables stay.

    block(name, head, body)         <style>, a frame, its head line, and what is below
    headline(title, why, *parts)    title, an explanation that is cut where room is short, what stands at the right
    table(head, rows)               `class="r"`: a number, at the right; `class="wide"`: left out where it is narrow
    chip(kind, text)                kinds: the keys of `TINTS`
    bar(part, kind)                 how much of it, 0 to 1
    html(widgets, value)            an HTML widget that costs little
    buttons(widgets)                what to make ipywidgets' buttons with, so that they look like these here

As a widget: a box with the class `nbmp`; in it one with the class `head`, whose HTML is a `headline`.
"""

from collections.abc import Callable, Iterable
from functools import partial
from html import escape
from types import ModuleType, SimpleNamespace
from typing import Any

TINTS = {
    "starting": "#b8860b",
    "waiting": "#b8860b",
    "running": "#1a73e8",
    "done": "#188038",
    "failed": "#d93025",
    "stopped": "#80868b",
}

# The class is doubled where a front end's own rules for tables must be outweighed. Each output brings these rules, so
# they also come after those of one kind of table above it: what is to outweigh them needs a class more.
STYLE = """<style>
.nbmp{--line:var(--jp-border-color2,var(--vscode-panel-border,rgba(128,128,128,.35)));
 --soft:var(--jp-ui-font-color2,var(--vscode-descriptionForeground,currentColor));
 --shade:var(--jp-layout-color2,rgba(128,128,128,.1));
 --code:var(--jp-code-font-family,ui-monospace,monospace);
 color:var(--jp-ui-font-color1,var(--vscode-editor-foreground,inherit));
 font:13px/1.45 var(--jp-ui-font-family,system-ui,sans-serif);font-variant-numeric:tabular-nums;
 border:1px solid var(--line);border-radius:8px;overflow:hidden;margin:2px 0;
 max-width:1120px;container-type:inline-size}
.nbmp .head{display:flex;flex-wrap:wrap;gap:4px 12px;align-items:center;padding:6px 10px;background:var(--shade)}
.nbmp .head b{font-size:14px;white-space:nowrap}
.nbmp .why{color:var(--soft);flex:1 1 0;min-width:90px;overflow:hidden;text-overflow:ellipsis;white-space:nowrap}
@container (min-width:640px){.nbmp.many .head{flex-wrap:nowrap}.nbmp.many .why{min-width:0}}
.jp-OutputArea-output>.nbmp.jupyter-widgets{margin:2px 20px 6px 0}
.nbmp .jupyter-widgets-disconnected::before,.nbmp.jupyter-widgets-disconnected::before,
.nbmp button.jupyter-widgets-disconnected,.nbmp .widget-text.jupyter-widgets-disconnected{display:none!important}
.nbmp .head.jupyter-widgets-disconnected::after{content:"the kernel is gone: this is as it was then";order:9;
 font-size:12px;opacity:.75;white-space:nowrap}
.nbmp .soft{color:var(--soft)}
.nbmp .chips{display:flex;flex-wrap:wrap;gap:4px 6px}
.nbmp .chip{display:inline-block;border-radius:10px;padding:0 9px;font-size:12px;line-height:20px;
 white-space:nowrap;background:rgba(128,128,128,.16)}
.nbmp .bar{display:inline-block;width:120px;height:6px;border-radius:3px;overflow:hidden;vertical-align:middle;
 background:rgba(128,128,128,.22)}
.nbmp .bar i{display:block;height:100%;border-radius:3px;background:#4c8bf5}
.nbmp .rows{overflow-x:auto}
.nbmp .head>.widget-html,.nbmp .head>.widget-html>.widget-html-content{display:contents}
.nbmp.nbmp .widget-button{width:auto;height:22px;line-height:20px;padding:0 9px;margin:0;font-size:12px;flex:none;
 border:1px solid var(--line);border-radius:6px;background:var(--jp-layout-color1,transparent);color:inherit;
 font-family:inherit;box-shadow:none;overflow:visible}
.nbmp.nbmp .widget-button:focus{background:var(--jp-layout-color1,transparent);color:inherit}
.nbmp.nbmp .widget-button:hover:enabled{background:var(--jp-layout-color2,rgba(128,128,128,.2))}
.nbmp.nbmp .widget-button:disabled{opacity:.5}
.nbmp.nbmp table{border-collapse:collapse;width:100%;margin:0;border:0;font-size:13px;color:inherit;table-layout:auto}
.nbmp.nbmp tr:nth-child(n){background:none}
.nbmp.nbmp th,.nbmp.nbmp td{padding:4px 10px;text-align:left;white-space:nowrap;
 border:0;border-top:1px solid var(--line);color:inherit;max-width:none;vertical-align:middle}
.nbmp.nbmp th{font-weight:500;font-size:12px;color:var(--soft)}
.nbmp.nbmp .r{text-align:right}
.nbmp.nbmp td.last{width:100%;max-width:0;min-width:8em;overflow:hidden;text-overflow:ellipsis;
 color:var(--soft);font-size:12px;font-family:var(--code)}
TINTED@container (max-width:520px){.nbmp .wide{display:none}
 .nbmp.nbmp th,.nbmp.nbmp td{padding:4px 6px}}
</style>""".replace(
    "TINTED",
    "".join(
        f".nbmp .{kind}{{background:color-mix(in srgb,{tint} 20%,transparent);"
        f"color:color-mix(in srgb,{tint} 58%,currentColor)}}\n.nbmp .bar i.{kind}{{background:{tint}}}\n"
        for kind, tint in TINTS.items()
    ),
)


def block(name: str, head: str, body: str) -> str:
    """Return a picture of its own: `name` is a class, for what looks for it."""
    return f'{STYLE}\n<div class="nbmp {name}">\n{head}\n{body}\n</div>'


def headline(title: str, why: str, *parts: str, tip: str = "") -> str:
    """Return what is in the head line; all is text but the parts, which are HTML. The tip is for who points at why."""
    shown = "".join(f" <span>{part}</span>" for part in parts)
    return f'<b>{escape(title)}</b> <span class="why" title="{escape(tip or why)}">{escape(why)}</span>{shown}'


def chips(found: Iterable[tuple[str, str]]) -> str:
    """Return chips beside each other, from kinds and texts."""
    return f'<span class="chips">{" ".join(chip(kind, text) for kind, text in found)}</span>'


def chip(kind: str, text: str) -> str:
    """Return a word in a colour."""
    return f'<span class="chip {kind}">{escape(text)}</span>'


def bar(part: float, kind: str = "") -> str:
    """Return a bar that is filled to `part`, between 0 and 1; in the colour of a kind of chip, or blue."""
    return f'<span class="bar"><i class="{kind}" style="width:{100 * min(max(part, 0.0), 1.0):.0f}%"></i></span>'


def table(head: str, rows: Iterable[str]) -> str:
    """Return a table from its `<tr>`s, which scrolls when it is too wide."""
    body = "\n".join(rows)
    return f'<div class="rows"><table><thead>{head}</thead><tbody>\n{body}\n</tbody></table></div>'


_made: dict[tuple[object, ...], Any] = {}


def _shared(key: tuple[object, ...], make: Callable[[], Any]) -> Any:
    """Return what was made under this key, made anew if it was closed since: `Widget.close_all` closes ours, too."""
    made = _made.get(key)
    if made is None or made.comm is None:
        made = _made[key] = make()
    return made


def layout(widgets: ModuleType, **traits: str) -> Any:
    """Return a Layout for any number of widgets: one of its own doubles what a widget costs, and outlives it."""
    return _shared(("layout", widgets, *sorted(traits.items())), lambda: widgets.Layout(**traits))


def html(widgets: ModuleType, value: str = "", *classes: str) -> Any:
    """Return a new HTML widget, with the layout and style of all others."""
    return widgets.HTML(value, layout=layout(widgets), style=_html_style(widgets), _dom_classes=classes)


def _html_style(widgets: ModuleType) -> Any:
    return _shared(("html", widgets), lambda: widgets.HTML().style)


def buttons(widgets: ModuleType, *classes: str) -> Any:
    """Return a stand-in for ipywidgets whose `Button` has one layout and style for all; for `clicks.button`."""
    style = _button_style(widgets)
    return SimpleNamespace(Button=partial(widgets.Button, layout=layout(widgets), style=style, _dom_classes=classes))


def _button_style(widgets: ModuleType) -> Any:
    return _shared(("button", widgets), lambda: widgets.Button().style)
