"""Threads of BLAS and OpenMP libraries that are loaded already, where environment variables come too late.

Finding the libraries costs milliseconds in a forked child and a fraction of one in its parent, so they are looked for before
the fork, in the launching process or in the fork server, and limited after it, in the rank.
"""

import sys
from typing import Any

_found: Any = None


def look() -> None:
    """Note which such libraries this process has loaded."""
    global _found
    if "numpy" in sys.modules:
        import threadpoolctl

        _found = threadpoolctl.ThreadpoolController()


def limit(threads: int) -> None:
    """Give each library that was noted `threads` threads, in this process, for good."""
    if _found is not None:
        _found.limit(limits=threads)
