"""Pages of text with code in them, and the programs and notebooks that are made of it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"


def blocks(page: Path, language: str) -> list[str]:
    """Return the page's blocks of that language, in order."""
    return re.findall(rf"^```{language}\n(.*?)\n```$", page.read_text(), re.DOTALL | re.MULTILINE)


def program(page: Path) -> str:
    """Return all that a page shows of Python, as one program."""
    return "\n".join([*blocks(page, "python"), ""])


def promised(text: str) -> list[str]:
    """Return what a program says that it prints: by a comment behind each `print`, at the margin or one step in."""
    return [line.partition("  # ")[2] for line in re.findall(r"^(?: {4})?print\(.*", text, re.MULTILINE)]


def write_notebook(path: Path, cells: Iterable[str]) -> None:
    """Write a notebook of code cells."""
    code: list[dict[str, Any]] = [
        {
            "cell_type": "code",
            "id": f"c{number}",
            "metadata": {},
            "execution_count": None,
            "outputs": [],
            "source": text,
        }
        for number, text in enumerate(cells)
    ]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    notebook = {"cells": code, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}
    path.write_text(json.dumps(notebook))
