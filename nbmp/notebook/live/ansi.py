"""Text with the colours of a terminal as HTML, and without them."""

import re
from html import escape

_ESCAPE = re.compile(r"\x1b(?:\[([0-9;:?]*)[ -/]*([@-~])|\][^\x07\x1b]*(?:\x07|\x1b\\)|[()][A-Z0-9]|.?)", re.DOTALL)
_NAMES = ("black", "red", "green", "yellow", "blue", "magenta", "cyan", "white")
_OTHERS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


def plain(text: str) -> str:
    """Return the text without escape sequences and control characters."""
    if "\x1b" in text:
        text = _ESCAPE.sub("", text)
    return _OTHERS.sub("", text) if not text.isprintable() else text


def html(text: str) -> str:
    """Return the text as HTML: the sixteen colours and bold are kept, as classes `ansi-red`, `ansi-bold`; the rest of
    what a terminal knows is left out."""
    if "\x1b" not in text:
        return escape(plain(text), quote=False)
    parts: list[str] = []
    classes: dict[str, str] = {}
    at = 0
    for found in _ESCAPE.finditer(text):
        parts.append(_span(text[at : found.start()], classes))
        at = found.end()
        if found[2] == "m":
            _change(classes, found[1])
    return "".join([*parts, _span(text[at:], classes)])


def _change(classes: dict[str, str], codes: str) -> None:
    numbers = [int(code) if code.isdecimal() else 0 for code in codes.split(";")]
    if numbers[0] in (38, 48):  # a colour of 256 or more: left out
        return
    for number in numbers:
        if number == 0:
            classes.clear()
        elif number == 1:
            classes["weight"] = "ansi-bold"
        elif number == 22:
            classes.pop("weight", None)
        elif number == 39:
            classes.pop("colour", None)
        elif number % 60 in range(30, 38) and number < 98:
            classes["colour"] = f"ansi-{_NAMES[number % 10]}"


def _span(text: str, classes: dict[str, str]) -> str:
    shown = escape(plain(text), quote=False)
    return f'<span class="{" ".join(classes.values())}">{shown}</span>' if classes and shown else shown
