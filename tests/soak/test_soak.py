"""A soak of some seconds: the real one is `python3 dev.py soak`."""

from __future__ import annotations

import pytest

from tests.soak.director import Director
from tests.soak.operations import OPERATIONS

SHORT = 20.0


@pytest.mark.slow
def test_a_short_soak_finds_nothing() -> None:
    names = [name for name in OPERATIONS if name != "kernel"]
    report = Director(1, SHORT, names=names).run()
    assert not report.findings, report.text()
    assert report.counts["launches"] > 0
