"""A fork by a test itself, of a process that has threads."""

from __future__ import annotations

import os
import warnings


def fork() -> int:
    """As `os.fork`; Python 3.12 and newer warn of it where there are threads, and warnings are errors here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()
