"""One server and one browser for these files."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

pytest.importorskip("playwright")

from playwright.sync_api import Browser

from tests.browser.lab import PICTURES, Lab, running_browser, server


@pytest.fixture(scope="package")
def browser(chromium: str) -> Iterator[Browser]:
    PICTURES.mkdir(exist_ok=True)
    with running_browser(chromium) as running:
        yield running


@pytest.fixture(scope="package")
def jupyter(tmp_path_factory: pytest.TempPathFactory, browser: Browser) -> Iterator[Lab]:
    folder = tmp_path_factory.mktemp("lab")
    with server(folder) as address:
        yield Lab(folder, address, browser)
