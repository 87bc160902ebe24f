"""JupyterLab with one notebook in Chromium, driven through Playwright."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

from tests.pages import write_notebook

ROOT = Path(__file__).resolve().parents[2]
PICTURES = ROOT / "artefacts"
"""Where tests leave what a person should look at."""
TOKEN = "nbmp"
BROWSER = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


class Lab:
    """A server and a browser. Each notebook is a page of its own, with a kernel of its own."""

    def __init__(self, folder: Path, address: str, browser: Browser) -> None:
        self.folder = folder
        self._address = address
        self._browser = browser

    @contextmanager
    def notebook(
        self, name: str, cells: list[str] | None, theme: str, width: int = 1100, scale: float = 1
    ) -> Iterator[Page]:
        """Open a new notebook with these cells and its kernel; nothing is run yet. None: one that is there.

        A picture has `scale` pixels for each of the page's `width`.
        """
        if cells is not None:
            write_notebook(self.folder / name, cells)
        write_settings(self.folder / "settings", theme)
        page = self._browser.new_page(viewport={"width": width, "height": 760}, device_scale_factor=scale)
        page.goto(f"{self._address}/lab/tree/{name}?token={TOKEN}&reset")
        page.wait_for_selector(".jp-Notebook .jp-CodeCell", timeout=60_000)
        page.wait_for_selector("#jp-main-statusbar >> text=/\\| Idle/", timeout=60_000)
        page.keyboard.press("Control+b")
        try:
            yield page
        finally:
            page.close()
            shut_kernels_down(self._address)


@contextmanager
def lab(folder: Path, chromium: str) -> Iterator[Lab]:
    """Start JupyterLab and a browser."""
    with server(folder) as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=BROWSER)
        try:
            yield Lab(folder, address, browser)
        finally:
            browser.close()


def run_cells(page: Page, count: int) -> None:
    """Run the first `count` cells; waits for all but the last."""
    page.click(".jp-Notebook .jp-CodeCell >> nth=0 >> .cm-content")
    for number in range(count):
        page.keyboard.press("Shift+Enter")
        if number < count - 1:
            page.wait_for_selector(f".jp-CodeCell >> nth={number} >> text=[{number + 1}]:", timeout=60_000)


def write_settings(folder: Path, theme: str) -> None:
    settings = {
        "themes": {"theme": theme},
        "notification": {"checkForUpdates": False, "fetchNews": "false"},
    }
    for name, content in settings.items():
        path = folder / "@jupyterlab" / "apputils-extension" / f"{name}.jupyterlab-settings"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(content))


@contextmanager
def server(folder: Path) -> Iterator[str]:
    """Run a Jupyter server in `folder`; its address."""
    port = free_port()
    address = f"http://127.0.0.1:{port}"
    env = {**os.environ, "JUPYTERLAB_SETTINGS_DIR": str(folder / "settings"), "PYTHONPATH": str(ROOT)}
    env.pop("PYTEST_CURRENT_TEST", None)
    options = [f"--port={port}", f"--IdentityProvider.token={TOKEN}", "--no-browser", "--allow-root"]
    with (folder / "server.log").open("w") as log:
        command = [sys.executable, "-m", "jupyterlab", *options, f"--ServerApp.root_dir={folder}"]
        process = subprocess.Popen(command, cwd=folder, env=env, stdout=log, stderr=log)
    try:
        wait_until_up(address, process)
        yield address
    finally:
        process.terminate()
        process.wait(20)


def wait_until_up(address: str, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 60
    while True:
        try:
            with urllib.request.urlopen(f"{address}/api/status?token={TOKEN}", timeout=5):
                return
        except OSError:
            assert process.poll() is None, "the server ended"
            assert time.monotonic() < deadline, "the server does not answer"
            time.sleep(0.1)


def shut_kernels_down(address: str) -> None:
    with urllib.request.urlopen(f"{address}/api/kernels?token={TOKEN}", timeout=5) as answer:
        kernels = json.load(answer)
    for kernel in kernels:
        url = f"{address}/api/kernels/{kernel['id']}?token={TOKEN}"
        with urllib.request.urlopen(urllib.request.Request(url, method="DELETE"), timeout=20):
            pass


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
