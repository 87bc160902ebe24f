"""Loggers and filters of warnings of the launching process, in ranks that inherit them and in ranks that do not."""

from __future__ import annotations

import contextlib
import logging
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

import nbmp
from tests import scripts

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def named() -> Iterator[logging.Logger]:
    """A logger as this process has not set it up yet."""
    logger = logging.getLogger("tests.of.nbmp")
    with contextlib.ExitStack() as undo:
        undo.callback(logger.setLevel, logging.NOTSET)
        undo.callback(setattr, logger, "propagate", True)
        yield logger
        for handler in list(logger.handlers):
            logger.removeHandler(handler)
            handler.close()


def log(rank: int) -> None:
    logger = logging.getLogger("tests.of.nbmp")
    logger.debug("debug of %d", rank)
    logger.info("info of %d", rank)


def test_levels_handlers_and_formats_of_named_loggers_apply(
    method: str, named: logging.Logger, capfd: Capture, tmp_path: Path
) -> None:
    to_stdout, to_file = logging.StreamHandler(sys.stdout), logging.FileHandler(tmp_path / "log")
    to_stdout.setFormatter(logging.Formatter("<{levelname} {message}>", style="{"))
    to_stdout.setLevel(logging.INFO)
    to_file.setFormatter(logging.Formatter("%(message)s"))
    named.setLevel(logging.DEBUG)
    named.propagate = False
    named.addHandler(to_stdout)
    named.addHandler(to_file)
    nbmp.launch(log, nprocs=2, start_method=method)
    captured = capfd.readouterr()
    assert sorted(captured.out.splitlines()) == ["[0] <INFO info of 0>", "[1] <INFO info of 1>"]
    assert captured.err == ""
    written = (tmp_path / "log").read_text().splitlines()
    assert sorted(written) == ["debug of 0", "debug of 1", "info of 0", "info of 1"]


def warn(rank: int) -> None:
    warnings.warn("loud", UserWarning, stacklevel=1)
    warnings.warn("quiet please", UserWarning, stacklevel=1)
    warnings.warn("gone", ResourceWarning, stacklevel=1)


WARNING = """
    import sys, warnings, nbmp
    from tests.launching.test_logging import warn

    warnings.simplefilter("ignore", ResourceWarning)
    warnings.filterwarnings("ignore", "quiet")
    nbmp.launch(warn, nprocs=4, start_method=sys.argv[1])
"""


def test_filters_of_warnings_apply_and_each_rank_is_heard(method: str, tmp_path: Path) -> None:
    lines = scripts.run(tmp_path, WARNING, method).stderr.splitlines()
    for rank in range(4):
        place, source = [line for line in lines if line.startswith(f"[{rank}] ")]
        assert place.endswith("UserWarning: loud")
        assert source == f'[{rank}]   warnings.warn("loud", UserWarning, stacklevel=1)'


def test_warnings_as_errors_are_errors_in_ranks(method: str) -> None:
    with warnings.catch_warnings(), pytest.raises(nbmp.ProcessRaisedException) as raised:
        warnings.simplefilter("error")
        nbmp.launch(warn, nprocs=1, start_method=method)
    assert isinstance(raised.value.__cause__, UserWarning)
