"""Every test here runs under both sharing strategies."""

import pytest


@pytest.fixture(autouse=True)
def under_both_strategies(strategy: str) -> None:
    """Have `strategy` chosen."""
