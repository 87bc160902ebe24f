"""Lines as a terminal shows them: written over by carriage returns and backspaces, in colours.

Only what has such characters is looked at closely; of colours (SGR sequences) none is lost, and none leaks into another
rank's lines.
"""

import re
from functools import lru_cache

_SGR = re.compile(r"\x1b\[([0-9;:]*)m")
_CONTROL = re.compile(r"\r|\x08|\x1b\[[0-9;:?]*[A-Za-z]|\x1b")
_MOST_STYLES = 8
_MOST_SEGMENTS = 50
"""Of a line with colours, so many times written over are looked at."""
SCREEN = 4096
"""Characters of a line that can still be written over, at least; in a longer one the cursor does not get back to what
is before them. A line of a terminal is shorter."""

RESET = "\x1b[0m"


def settled(line: str) -> str:
    """Return what is seen of a line in the end. One without its end yet: so far."""
    if "\b" not in line:
        if "\r" not in line:
            return line
        if "\x1b" not in line:
            return _written_over(line)
    screen = _Screen(line)
    return screen.fixed() + screen.text()


def unsettled(line: str, style: str = "") -> str:
    """Return a short line that looks the same after `style`, and on which more text has the same effect."""
    return "".join(divided(line, style))


def divided(line: str, style: str = "") -> tuple[str, str]:
    """Return `unsettled` as what stays as it is, and the rest, which alone has to be looked at again."""
    if style or "\b" in line or "\x1b" in line:
        screen = _Screen(style + line)
        return screen.fixed(), (RESET if style else "") + screen.raw()
    _, is_over, text = line.rpartition("\r")
    return "", f"{settled(line)}\r{text}" if is_over else line


def uncoloured(line: str) -> str:
    """Return the line without colours."""
    return _SGR.sub("", line) if "\x1b" in line else line


def finished(text: str, style: str) -> tuple[str, str]:
    """Return whole lines as they are seen, each with its colours switched on and off in itself, and what is on after.

    `style` is what is on before them.
    """
    if not style and not any(character in text for character in "\r\b\x1b"):
        return text, ""
    lines = []
    for line in text.split("\n"):
        line = style + line
        style = _style_after(line, "")
        lines.append(settled(line) + (RESET if style else ""))
    return "\n".join(lines), style


def _style_after(line: str, style: str) -> str:
    if "\x1b" not in line:
        return style
    on = [match[0] for match in _SGR.finditer(style)]
    for match in _SGR.finditer(line):
        if match[1] in ("", "0", "00"):
            on = []
        else:
            on = [*(kept for kept in on if kept != match[0]), match[0]][-_MOST_STYLES:]
    return "".join(on)


_style_after_control = lru_cache(64)(_style_after)  # a line may have one for each of its characters


def _written_over(line: str) -> str:
    seen = ""
    for segment in reversed(line.split("\r")):
        if len(segment) > len(seen):
            seen += segment[len(seen) :]
    return seen


class _Screen:
    """One line of a terminal: its last cells, each a character with its style, and the cursor."""

    def __init__(self, line: str) -> None:
        self._fixed: list[str] = []
        self._cells: list[tuple[str, str]] = []
        self._at = 0
        self._style = ""
        segments = line.split("\r")
        line = "\r".join(segments[-_MOST_SEGMENTS:])
        end = 0
        for control in _CONTROL.finditer(line):
            if control.start() > end:
                self._write(line[end : control.start()])
            self._obey(control[0])
            end = control.end()
        self._write(line[end:])

    def fixed(self) -> str:
        """Return what is seen of it before the cells, with no style on at its end."""
        return "".join(self._fixed)

    def text(self) -> str:
        """Return what is seen of the cells, and the style that is on at their end."""
        text, on = _seen(self._cells)
        return text + _change(on, self._style)

    def raw(self) -> str:
        """Return a line that looks like the cells and leaves the cursor where it is."""
        return self.text() + "\b" * (len(self._cells) - self._at)

    def _write(self, text: str) -> None:
        over = len(self._cells) - self._at
        self._put(text[:over])
        further = text[over:]
        if len(further) > SCREEN:
            self._fix(len(self._cells))
            self._fixed.append(self._style + further[:-SCREEN] + (RESET if self._style else ""))
            further = further[-SCREEN:]
        self._put(further)
        if self._at > 2 * SCREEN:
            self._fix(self._at - SCREEN)

    def _put(self, text: str) -> None:
        self._cells[self._at : self._at + len(text)] = [(self._style, character) for character in text]
        self._at += len(text)

    def _fix(self, count: int) -> None:
        text, on = _seen(self._cells[:count])
        self._fixed.append(text + _change(on, ""))
        del self._cells[:count]
        self._at -= count

    def _obey(self, control: str) -> None:
        if control == "\r":
            self._at = 0
        elif control == "\b":
            self._at = max(0, self._at - 1)
        elif control.endswith("m"):
            self._style = _style_after_control(control, self._style)
        elif control.endswith("K"):
            mode = control[2:-1]
            if mode in ("", "0"):
                del self._cells[self._at :]
            elif mode == "2":
                self._cells = [("", " ")] * self._at


def _seen(cells: list[tuple[str, str]]) -> tuple[str, str]:
    """Return what is seen of cells, and the style that is on at their end."""
    shown, on = [], ""
    for style, character in cells:
        if style != on:
            shown.append(_change(on, style))
            on = style
        shown.append(character)
    return "".join(shown), on


def _change(on: str, style: str) -> str:
    """Return what switches from one style to another one."""
    return "" if style == on else f"{RESET if on else ''}{style}"
