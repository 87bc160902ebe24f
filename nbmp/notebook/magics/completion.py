"""Tab completion on the line of a magic: its options, the values of those that take one of a few, names of launches.

IPython asks a function for each magic's name, since long before 7.34; the line and what is typed of the word are all
that it is told.
"""

from collections.abc import Callable, Iterable
from typing import Any

from nbmp.notebook.magics import arguments, control, naming
from nbmp.notebook.magics import mpshm as memory_magic
from nbmp.notebook.magics.parsing import Parser

PARSERS: dict[str, Callable[[], Parser]] = {
    "mpspawn": arguments.parser,
    **control.PARSERS,
    "mpshm": memory_magic.parser,
}
"""By the magic's name."""

HOOK = "complete_command"
PYTHON = "_jedi_matches"
"""The method that completes Python, private in all versions of IPython; without it our words stand among Python's."""


def enable(shell: Any) -> None:
    """Have the lines of the magics completed in this shell."""
    disable(shell)
    for key in _keys():
        shell.set_hook(HOOK, complete, str_key=key)
    _keep_python_out(shell.Completer)


def disable(shell: Any) -> None:
    """Complete them no more."""
    hooks = shell.strdispatchers.get(HOOK)
    for key in _keys():
        if hooks is not None:
            hooks.strs.pop(key, None)
    vars(shell.Completer).pop(PYTHON, None)


def complete(shell: Any, event: Any) -> list[str]:
    """Return what may stand at the cursor."""
    parser = PARSERS[event.command.lstrip("%")]()
    before = event.text_until_cursor.removesuffix(event.symbol).replace("=", " ").split()
    last = before[-1] if before else ""
    if last in parser.values:
        return _that_begin(parser.values[last], event.symbol)
    found = parser.options()
    if any(action.dest == "words" for action in parser._actions) and not event.symbol.startswith("-"):
        found = [*naming.called(shell), *found]
    return _that_begin((option for option in found if option not in before), event.symbol)


def _keep_python_out(completer: Any) -> None:
    """Have Jedi say nothing of these lines: it takes `--st` for two minus signs and names that begin with `st`."""
    original = getattr(completer, PYTHON, None)
    if original is None:
        return

    def python(cursor_column: int, cursor_line: int, text: str) -> Any:
        is_ours = text.split("\n")[cursor_line].split(maxsplit=1)[:1]
        return [] if is_ours and is_ours[0] in _keys() else original(cursor_column, cursor_line, text)

    setattr(completer, PYTHON, python)


def _that_begin(words: Iterable[str], text: str) -> list[str]:
    return [word for word in words if word.startswith(text)]


def _keys() -> list[str]:
    return [prefix + name for name in PARSERS for prefix in ("%", "%%")]
