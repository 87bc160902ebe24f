"""What the ranks of a cell returned, as the value of the cell: a list, shown richly when something in it can be."""

import base64
from html import escape
from typing import Any

from IPython.core.interactiveshell import InteractiveShell

from nbmp.notebook.output.celloutputs import COLOURS

IMAGES = ("image/svg+xml", "image/png", "image/jpeg")

_CSS = {36: "#2aa1a3", 35: "#c04fb4", 33: "#b8930f", 34: "#208ffb", 32: "#00a250"}
"""Of the tags' colours; those that are bright are the same here."""


class Results(list[Any]):
    """The results of all ranks, in rank order."""

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        """Return HTML with each rank's value below its tag, if one of them is more than text."""
        shell: Any = InteractiveShell._instance
        if shell is None:
            return {}
        bundles = [shell.display_formatter.format(value)[0] for value in self]
        if not any(_rich(bundle) for bundle in bundles):
            return {}
        shown = "".join(_value(rank, bundle) for rank, bundle in enumerate(bundles))
        return {"text/html": f'<div style="display: flex; flex-wrap: wrap; gap: 4px 32px">{shown}</div>'}


def data_of(shell: Any, results: list[Any]) -> dict[str, Any]:
    """Return the results as the data of a display message."""
    data: dict[str, Any] = shell.display_formatter.format(Results(results))[0]
    return data


def _rich(bundle: dict[str, Any]) -> str:
    """Return a value as HTML; empty when it is text only."""
    if bundle.get("text/html"):
        return str(bundle["text/html"])
    for mime in IMAGES:
        if mime in bundle:
            image = bundle[mime]
            if mime == "image/svg+xml":
                return str(image)
            coded = base64.b64encode(image).decode() if isinstance(image, bytes) else "".join(image.split())
            return f'<img src="data:{mime};base64,{coded}">'
    return ""


def _value(rank: int, bundle: dict[str, Any]) -> str:
    colour = COLOURS[rank % len(COLOURS)]
    style = f"color: {_CSS.get(colour, _CSS.get(colour - 60))}; font: var(--jp-code-font-size, 13px) monospace"
    tag = f'<div style="{style}">[{rank}]</div>'
    shown = _rich(bundle) or f"<pre>{escape(bundle.get('text/plain', ''))}</pre>"
    return f"<div>{tag}{shown}</div>"
