"""Logging and warnings of the launching process, as far as ranks that do not inherit them can have them too.

Loggers have their levels, and those of their handlers that write to the standard streams or append to a file; a
formatter of the user's own class becomes a plain one with the same format. Other handlers stay where they are. Filters
of warnings go along when their category is one of Python's own: another one would load its module in every rank.
"""

import logging
import sys
import warnings
from collections.abc import Iterator
from typing import Any

from nbmp.launching.messages import HandlerSetup, LoggerSetup, WarningFilter

_STYLES = {logging.PercentStyle: "%", logging.StrFormatStyle: "{", logging.StringTemplateStyle: "$"}

# -- in the launching process ------------------------------------------------------------------------------------------


def loggers() -> tuple[LoggerSetup, ...]:
    """Return how the loggers of this process are set up: those that are."""
    named = [logger for _, logger in sorted(logging.root.manager.loggerDict.items())]
    found = [_setup(logger) for logger in (logging.root, *named) if isinstance(logger, logging.Logger)]
    return tuple(setup for setup in found if setup != LoggerSetup(setup.name, *_UNTOUCHED) and setup != _ROOT)


def warning_filters() -> tuple[WarningFilter, ...]:
    """Return the filters of warnings, the first one that counts first."""
    return tuple(
        WarningFilter(action, _pattern(message), category.__name__, _pattern(module), line)
        for action, message, category, module, line in warnings.filters
        if isinstance(category, type) and category.__module__ == "builtins"
    )


_UNTOUCHED = (logging.NOTSET, True, False, ())
_ROOT = LoggerSetup("root", logging.WARNING, True, False, ())


def _setup(logger: logging.Logger) -> LoggerSetup:
    handlers = tuple(_handlers(logger))
    return LoggerSetup(logger.name, logger.level, logger.propagate, logger.disabled, handlers)


def _handlers(logger: logging.Logger) -> Iterator[HandlerSetup]:
    for handler in logger.handlers:
        formatter = handler.formatter or logging.Formatter()
        style = _STYLES.get(type(formatter._style), "%")
        rest = handler.level, formatter._fmt, formatter.datefmt, style
        if type(handler) is logging.FileHandler:
            yield HandlerSetup("", handler.baseFilename, handler.encoding, *rest)
        elif isinstance(handler, logging.StreamHandler):
            for name in ("stdout", "stderr"):
                if handler.stream in (getattr(sys, name), getattr(sys, f"__{name}__")):
                    yield HandlerSetup(name, "", None, *rest)
                    break


def _pattern(matches: Any) -> str:
    return str(getattr(matches, "pattern", matches) or "")


# -- in the rank -------------------------------------------------------------------------------------------------------


def adopt(setups: tuple[LoggerSetup, ...], filters: tuple[WarningFilter, ...]) -> None:
    """Set the loggers and the filters of warnings of this rank up like that."""
    for setup in setups:
        logger = logging.getLogger(None if setup.name == "root" else setup.name)
        logger.setLevel(setup.level)
        logger.propagate, logger.disabled = setup.propagate, setup.disabled
        for handler in map(_handler, setup.handlers):
            logger.addHandler(handler)
    import builtins

    warnings.resetwarnings()
    for action, message, category, module, line in filters:
        warnings.filterwarnings(action, message, getattr(builtins, category), module, line, append=True)  # type: ignore[arg-type]


def _handler(setup: HandlerSetup) -> logging.Handler:
    handler: logging.Handler
    if setup.stream:
        handler = logging.StreamHandler(getattr(sys, setup.stream))
    else:
        handler = logging.FileHandler(setup.file, "a", setup.encoding, delay=True)
    handler.setLevel(setup.level)
    handler.setFormatter(logging.Formatter(setup.format, setup.datefmt, setup.style))  # type: ignore[arg-type]
    return handler
