"""One server and one browser for each file."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

pytest.importorskip("playwright")

from tests.browser.lab import PICTURES, Lab, lab


@pytest.fixture(scope="module")
def jupyter(tmp_path_factory: pytest.TempPathFactory, chromium: str) -> Iterator[Lab]:
    PICTURES.mkdir(exist_ok=True)
    with lab(tmp_path_factory.mktemp("lab"), chromium) as started:
        yield started
