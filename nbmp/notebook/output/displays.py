"""What ranks display: messages for the front end, from which a person can see whose they are.

    display             a caption, `[2]`, then the output; text alone is shown as tagged lines. Of a launch `DISPLAYS`,
                        and of each rank `DISPLAYS_OF_RANK` in any case; those that a rank displays beyond take one
                        place, each in place of the one before
    update_display      at most `CHANGES_A_SECOND` of each output; the last one is always shown
    clear_output        clears what this rank has displayed, and nothing of others: not their outputs, not the table of
                        ranks. Outputs that follow take the places of those that were cleared
    display ids         are a rank's own: of four ranks that run the same code, each updates its own output. An id that
                        the rank has not displayed is the notebook's

All here is plain data: time comes in with each call.
"""

import math
import uuid
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from nbmp.launching.frontends import Chunk, Display

CHANGES_A_SECOND = 10
DISPLAYS = 200
DISPLAYS_OF_RANK = 4
CAPTION = "\n"
"""A line with nothing but its tag."""
CROWDED = f"\N{HORIZONTAL ELLIPSIS} more than {DISPLAYS} outputs: the last of the further ones of this rank is here:\n"


class _Waiting(NamedTuple):
    content: dict[str, Any]
    due: float


class _OfRank:
    """The outputs of one rank; `place` is a display id that the front end knows."""

    def __init__(self) -> None:
        self.places: dict[str, str] = {}
        """Of the display ids that the rank's code uses."""
        self.filled: list[str] = []
        self.free: deque[str] = deque()
        """Cleared, not used again yet."""
        self.clears_next = False
        self.last = ""
        """Place of what is displayed beyond the allowance."""

    def is_crowded(self, places: int) -> bool:
        """Return whether a further place is not allowed, as there are so many of all ranks."""
        return places >= DISPLAYS and len(self.filled) >= DISPLAYS_OF_RANK

    def again(self, is_crowded: bool) -> str:
        """Return a place to use once more, empty if a new one is needed."""
        if self.free:
            return self.free.popleft()
        if not is_crowded:
            return ""
        # the ids of what was there lead nowhere from here on
        self.places = {own: place for own, place in self.places.items() if place != self.last}
        return self.last

    def clear(self) -> None:
        self.free.extend(self.filled)
        self.filled, self.places, self.clears_next = [], {}, False


class Displays:
    """The outputs of the ranks of one launch."""

    def __init__(self) -> None:
        self._ranks: dict[int, _OfRank] = {}
        self._sent: dict[str, float] = {}
        """When a place was changed last."""
        self._new = 0
        """Places that were made."""
        self._waiting: dict[str, _Waiting] = {}

    def take(self, rank: int, message: Display, now: float, label: str = "") -> list[Display | Chunk]:
        """Return what is to be sent now."""
        outputs = self._ranks.setdefault(rank, _OfRank())
        content = message.content
        if message.kind == "display_data":
            return self._show(Chunk(rank, "stdout", CAPTION, label), outputs, content, now)
        if message.kind == "update_display_data":
            own = _id(content)
            return list(self._change(outputs.places.get(own, own), content, now))
        if content.get("wait"):
            outputs.clears_next = True
            return []
        outputs.clear()
        return list(self._blank(outputs.free, now))

    def after_pause(self, now: float) -> list[Display]:
        """Return the changes that had to wait and are due."""
        ready = [place for place, waiting in self._waiting.items() if waiting.due <= now]
        return [self._changed(place, self._waiting.pop(place).content, now) for place in ready]

    def at_end(self, now: float) -> list[Display]:
        """Return all changes that wait."""
        waiting, self._waiting = self._waiting, {}
        return [self._changed(place, held.content, now) for place, held in waiting.items()]

    def due(self) -> float:
        """Return at which time `after_pause` has something."""
        return min((waiting.due for waiting in self._waiting.values()), default=math.inf)

    def _show(self, caption: Chunk, outputs: _OfRank, content: dict[str, Any], now: float) -> list[Display | Chunk]:
        own = _id(content)
        if not own and not outputs.clears_next and not outputs.free and set(content["data"]) == {"text/plain"}:
            return [caption._replace(text=f"{content['data']['text/plain']}\n")]
        clears = outputs.clears_next
        if clears:
            outputs.clear()
        is_crowded = outputs.is_crowded(self._new)
        again = outputs.again(is_crowded)
        place = again or uuid.uuid4().hex
        if place not in outputs.filled[-1:]:
            outputs.filled.append(place)
        if own:
            outputs.places[own] = place
        if not again:
            self._sent[place] = now
            self._new += 1
            if is_crowded:
                outputs.last = place
                caption = caption._replace(text=CROWDED)
            return [caption, Display("display_data", _at(place, content))]
        return [*self._change(place, content, now), *(self._blank(outputs.free, now) if clears else ())]

    def _change(self, place: str, content: dict[str, Any], now: float) -> Iterator[Display]:
        due = self._sent.get(place, -math.inf) + 1 / CHANGES_A_SECOND
        if due <= now:
            self._waiting.pop(place, None)
            yield self._changed(place, content, now)
        else:
            self._waiting[place] = _Waiting(content, due)

    def _changed(self, place: str, content: dict[str, Any], now: float) -> Display:
        self._sent[place] = now
        return Display("update_display_data", _at(place, content))

    def _blank(self, places: Iterable[str], now: float) -> Iterator[Display]:
        for place in places:
            self._waiting.pop(place, None)
            yield self._changed(place, {"data": {"text/plain": ""}, "metadata": {}}, now)


def _id(content: dict[str, Any]) -> str:
    return content.get("transient", {}).get("display_id") or ""


def _at(place: str, content: dict[str, Any]) -> dict[str, Any]:
    return {**content, "transient": {"display_id": place}}
