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
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


OPEN = """async ([path, theme]) => {
    const {commands} = window.jupyterapp;
    await commands.execute('apputils:change-theme', {theme});
    await commands.execute('docmanager:open', {path, factory: 'Notebook'});
}"""
CLOSE = "window.jupyterapp.shell.currentWidget.dispose()"
"""At once, without a question whether to save it."""


class Lab:
    """A server and a browser with a page, which shows one notebook after the other, each with a kernel of its own.

    To load JupyterLab takes a page many seconds, to open a notebook in it two.
    """

    def __init__(self, folder: Path, address: str, browser: Browser) -> None:
        self.folder = folder
        self._address = address
        self._browser = browser
        self._pages: dict[float, Page] = {}

    @contextmanager
    def notebook(
        self, name: str, cells: list[str] | None, theme: str, width: int = 1100, scale: float = 1
    ) -> Iterator[Page]:
        """Open a new notebook with these cells and its kernel; nothing is run yet. None: one that is there.

        A picture has `scale` pixels for each of the page's.
        """
        if cells is not None:
            write_notebook(self.folder / name, cells)
        if scale not in self._pages:
            self._pages[scale] = self._browser.new_page(device_scale_factor=scale)
            self.load(self._pages[scale])
        page = self._pages[scale]
        page.set_viewport_size({"width": width, "height": 760})
        page.evaluate(OPEN, [name, theme])
        page.wait_for_selector(".jp-Notebook .jp-CodeCell", timeout=60_000)
        page.wait_for_selector("#jp-main-statusbar >> text=/\\| Idle/", timeout=60_000)
        try:
            yield page
        finally:
            page.evaluate(CLOSE)
            shut_kernels_down(self._address)

    def load(self, page: Page, notebook: str = "") -> None:
        """Load all of the page anew, with that notebook as it was saved."""
        path = f"/tree/{notebook}" if notebook else ""
        page.goto(f"{self._address}/lab{path}?token={TOKEN}&reset")
        page.wait_for_function("window.jupyterapp", timeout=60_000)
        page.evaluate("window.jupyterapp.restored.then(() => null)")
        page.keyboard.press("Control+b")


@contextmanager
def running_browser(chromium: str) -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        try:
            yield browser
        finally:
            browser.close()


def run_cells(page: Page, count: int) -> None:
    """Run the first `count` cells; waits for all but the last."""
    page.click(".jp-Notebook .jp-CodeCell >> nth=0 >> .cm-content")
    for number in range(count):
        page.keyboard.press("Shift+Enter")
        if number < count - 1:
            page.wait_for_selector(f".jp-CodeCell >> nth={number} >> text=[{number + 1}]:", timeout=60_000)


def write_settings(folder: Path) -> None:
    """Have JupyterLab ask nothing of anybody but its own server."""
    path = folder / "@jupyterlab" / "apputils-extension" / "notification.jupyterlab-settings"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"checkForUpdates": False, "fetchNews": "false"}))


@contextmanager
def server(folder: Path) -> Iterator[str]:
    """Run a Jupyter server in `folder`; its address."""
    port = free_port()
    address = f"http://127.0.0.1:{port}"
    env = {**os.environ, "JUPYTERLAB_SETTINGS_DIR": str(folder / "settings"), "PYTHONPATH": str(ROOT)}
    env.pop("PYTEST_CURRENT_TEST", None)
    write_settings(folder / "settings")
    options = [f"--port={port}", f"--IdentityProvider.token={TOKEN}", "--no-browser", "--allow-root"]
    options.append("--LabApp.expose_app_in_browser=True")  # its commands: to open a notebook, to change the theme
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
