"""The line of a magic: options as a person writes them, errors as a person would say them."""

import argparse
import keyword
import re
import shlex
from collections.abc import Iterable
from contextlib import suppress
from difflib import get_close_matches
from typing import NoReturn

from IPython.core.error import UsageError


class Parser(argparse.ArgumentParser):
    """Parses the line of one magic. A UsageError of one line says what is wrong; nothing ends the process.

    Attributes
    ----------
    values : dict of str to tuple of str
        Options that take one of a few values, and those values; for completion.
    """

    def __init__(self, magic: str, description: str, epilog: str) -> None:
        super().__init__(
            prog=magic,
            description=description,
            epilog=epilog,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            add_help=False,
            allow_abbrev=False,
        )
        self.values: dict[str, tuple[str, ...]] = {}
        self.add_argument("-h", "--help", action="store_true", help="print this text and do nothing")

    def parse_line(self, line: str) -> argparse.Namespace:
        """Return the options in `line`; UsageError names what is wrong."""
        try:
            words = shlex.split(line)
        except ValueError as error:
            raise self.wrong(f"{error} in {line.strip()!r}") from None
        known, rest = self.parse_known_intermixed_args(words)
        if rest and not known.help:
            raise self.wrong(self._not_known(rest[0]))
        return known

    def add_choice(self, option: str, values: tuple[str, ...], help: str) -> None:
        """Add an option that takes one of a few values."""
        self.values[option] = values

        def one_of(text: str) -> str:
            if text in values:
                return text
            raise argparse.ArgumentTypeError(f"is {any_of(values)}, not {text!r}{did_you_mean(text, values)}")

        self.add_argument(option, type=one_of, metavar=f"{{{','.join(values)}}}", help=help)

    def options(self) -> list[str]:
        """Return all options, in the order of the help text."""
        return [name for action in self._actions for name in action.option_strings]

    def wrong(self, text: str) -> UsageError:
        """Return the error that says so."""
        return UsageError(f"{self.prog}: {text} (%{self.prog.lstrip('%')} --help lists the options)")

    def error(self, message: str) -> NoReturn:
        option, text = re.fullmatch(r"(?:argument (?:-\w/)?(\S+): )?(.*)", message, re.DOTALL).groups()  # type: ignore[union-attr]
        if option is None:
            raise self.wrong(text)
        text = "needs a value" if text == "expected one argument" else text
        raise self.wrong(f"{option} {text}")

    def _not_known(self, word: str) -> str:
        if word.startswith("#"):
            return "a comment stands on a line of its own, in the body"
        if not word.startswith("-"):
            hint = f"; for {word} ranks write -n {word}" if word.isdecimal() and "-n" in self.options() else ""
            return f"{word!r} belongs to no option{hint}"
        option = word.partition("=")[0]
        if option in ("--nprocs", "--np", "--ranks", "--world-size", "--workers") and "-n" in self.options():
            return f"there is no option {option}; for the number of ranks write -n"
        return f"there is no option {option}{did_you_mean(option, self.options())}"


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return `; did you mean --start-method?`, empty when nothing is like `word`; dashes in front are no likeness."""
    names = {name.lstrip("-"): name for name in known}
    found = get_close_matches(word.lstrip("-"), names, 1)
    return f"; did you mean {names[found[0]]}?" if found else ""


def any_of(words: Iterable[str]) -> str:
    """Return `fork, forkserver or spawn`."""
    *most, last = words
    return f"{', '.join(most)} or {last}" if most else last


def whole(text: str) -> int:
    with suppress(ValueError):
        if int(text) >= 1:
            return int(text)
    raise _unusable("a whole number of at least 1", text)


def seconds(text: str) -> float:
    with suppress(ValueError):
        if 0 <= float(text) < float("inf"):
            return float(text)
    raise _unusable("a number of seconds", text)


def variable(text: str) -> str:
    if text.isidentifier() and not keyword.iskeyword(text):
        return text
    raise _unusable("a variable name", text)


def gpus(text: str) -> str | list[str]:
    """Return numbers or UUIDs, as CUDA_VISIBLE_DEVICES has them; or `all`."""
    names = [name.strip() for name in text.split(",")]
    if text == "all":
        return text
    if all(re.fullmatch(r"\d+|(GPU|MIG)-[\w/-]+", name) for name in names):
        return names
    raise _unusable("GPUs, such as 0,1", text)


def pair(text: str) -> tuple[str, str]:
    name, sign, value = text.partition("=")
    if name and sign:
        return name, value
    raise _unusable("NAME=VALUE", text)


def _unusable(wanted: str, text: str) -> argparse.ArgumentTypeError:
    hint = ""
    if re.fullmatch(r"\{.*\}|\$\w+", text):  # IPython leaves what it cannot evaluate as it is
        hint = ", which has no value: is that name defined?"
    elif text.isidentifier() and "number" in wanted:
        hint = f"; for the value of a variable write {{{text}}}"
    return argparse.ArgumentTypeError(f"needs {wanted}, not {text!r}{hint}")
