"""What a rank displays, on its way to the launching process. Runs in a rank."""

import base64
import json
from collections.abc import Callable
from typing import Any

from IPython.core.displaypub import DisplayPublisher

from nbmp.launching.frontends import Display

WIDGET = "application/vnd.jupyter.widget-view+json"


OUTPUT_WIDGET = "Output("
"""Text of a widget that is nothing but a place for what is shown within it."""


class RankPublisher(DisplayPublisher):
    """Publishes through the launching process.

    What code sets on a kernel's publisher it may set here too (`parent_header`, `set_parent`); the cell that launched
    the ranks gets the output all the same."""

    parent_header: Any = None

    def __init__(self, ship: Callable[[Display], None], **traits: Any):
        super().__init__(**traits)  # type: ignore[no-untyped-call]
        self._ship = ship

    def publish(
        self,
        data: dict[str, Any],
        metadata: dict[str, Any] | None = None,
        source: object = None,
        *,
        transient: dict[str, Any] | None = None,
        update: bool = False,
        **_: Any,
    ) -> None:
        """Show a bundle; of a widget its text, since its model lives here, where no front end reaches it.

        Raises TypeError or ValueError if JSON cannot take something in it."""
        if WIDGET in data and str(data.get("text/plain", "")).startswith(OUTPUT_WIDGET):
            return
        shown = {mime: _coded(value) for mime, value in data.items() if mime != WIDGET}
        content = {"data": shown, "metadata": metadata or {}, "transient": transient or {}}
        self._ship(Display("update_display_data" if update else "display_data", _jsonable(content)))

    def clear_output(self, wait: bool = False) -> None:
        """Clear the output of the cell that launched the ranks."""
        self._ship(Display("clear_output", {"wait": wait}))

    def set_parent(self, parent: Any) -> None:
        """Do nothing: as an `Output` widget wants it of a kernel's publisher."""

    def set_thread_parent(self, parent: Any) -> None:
        """Likewise."""

    def reset_thread_parent(self, token: Any) -> None:
        """Likewise."""


def _coded(value: Any) -> Any:
    return base64.b64encode(value).decode("ascii") if isinstance(value, bytes) else value


def _jsonable(content: dict[str, Any]) -> dict[str, Any]:
    """Return the content as it arrives at a front end, plain data: what cannot arrive is an error here."""
    try:
        text = json.dumps(content, ensure_ascii=False)
    except (TypeError, ValueError):
        from jupyter_client.jsonutil import json_clean  # knows dates, sets, numbers of NumPy

        text = json.dumps(json_clean(content), ensure_ascii=False)
    text.encode("utf-8", "surrogateescape")
    plain: dict[str, Any] = json.loads(text)
    return plain
