"""Lines as a terminal shows them: written over by carriage returns and backspaces, in colours.

Only what has such characters is looked at closely; of colours (SGR sequences) none is lost, and none leaks into another
rank's lines.
"""

import re

_SGR = re.compile(r"\x1b\[([0-9;:]*)m")
_CONTROL = re.compile(r"\r|\x08|\x1b\[[0-9;:?]*[A-Za-z]|\x1b")
_MOST_STYLES = 8
_MOST_SEGMENTS = 50
"""Of a line with colours, so many times written over are looked at."""

RESET = "\x1b[0m"


def settled(line: str) -> str:
    """Return what is seen of a line in the end. One without its end yet: so far."""
    if "\b" not in line:
        if "\r" not in line:
            return line
        if "\x1b" not in line:
            return _written_over(line)
    return _Screen(line).text()


def unsettled(line: str, style: str = "") -> str:
    """Return a short line that looks the same after `style`, and on which more text has the same effect."""
    if style or "\b" in line or "\x1b" in line:
        return (RESET if style else "") + _Screen(style + line).raw()
    _, is_over, text = line.rpartition("\r")
    return f"{settled(line)}\r{text}" if is_over else line


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


def _written_over(line: str) -> str:
    seen = ""
    for segment in reversed(line.split("\r")):
        if len(segment) > len(seen):
            seen += segment[len(seen) :]
    return seen


class _Screen:
    """One line of a terminal: its cells, each a character with its style, and the cursor."""

    def __init__(self, line: str) -> None:
        self._cells: list[tuple[str, str]] = []
        self._at = 0
        self._style = ""
        segments = line.split("\r")
        line = "\r".join(segments[-_MOST_SEGMENTS:])
        end = 0
        for control in _CONTROL.finditer(line):
            self._write(line[end : control.start()])
            self._obey(control[0])
            end = control.end()
        self._write(line[end:])

    def text(self) -> str:
        """Return what is seen, and the style that is on at its end."""
        shown, on = [], ""
        for style, character in self._cells:
            if style != on:
                shown.append(f"{RESET if on else ''}{style}")
                on = style
            shown.append(character)
        if self._style != on:
            shown.append(f"{RESET if on else ''}{self._style}")
        return "".join(shown)

    def raw(self) -> str:
        """Return a line that looks like this one and leaves the cursor where it is."""
        return self.text() + "\b" * (len(self._cells) - self._at)

    def _write(self, text: str) -> None:
        missing = self._at - len(self._cells)
        self._cells += [("", " ")] * missing
        self._cells[self._at : self._at + len(text)] = [(self._style, character) for character in text]
        self._at += len(text)

    def _obey(self, control: str) -> None:
        if control == "\r":
            self._at = 0
        elif control == "\b":
            self._at = max(0, self._at - 1)
        elif control.endswith("m"):
            self._style = _style_after(control, self._style)
        elif control.endswith("K"):
            mode = control[2:-1]
            if mode in ("", "0"):
                del self._cells[self._at :]
            elif mode == "2":
                self._cells = [("", " ")] * self._at
