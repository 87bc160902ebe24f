"""What a rank displays, on its way to the launching process. Runs in a rank."""

import base64
from collections.abc import Callable
from typing import Any

from IPython.core.displaypub import DisplayPublisher

from nbmp.launching.frontends import Display

WIDGET = "application/vnd.jupyter.widget-view+json"


class RankPublisher(DisplayPublisher):
    """Publishes through the launching process."""

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
        """Show a bundle; of a widget its text, since its model lives here, where no front end reaches it."""
        shown = {mime: _jsonable(value) for mime, value in data.items() if mime != WIDGET}
        content = {"data": shown, "metadata": metadata or {}, "transient": transient or {}}
        self._ship(Display("update_display_data" if update else "display_data", content))

    def clear_output(self, wait: bool = False) -> None:
        """Clear the output of the cell that launched the ranks."""
        self._ship(Display("clear_output", {"wait": wait}))


def _jsonable(value: Any) -> Any:
    return base64.b64encode(value).decode("ascii") if isinstance(value, bytes) else value
