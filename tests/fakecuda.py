"""A `libcuda.so.1` with the two functions that tell whether CUDA is initialised, for machines without a driver."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

COMPILER = shutil.which("cc")
NEEDS_COMPILER = pytest.mark.skipif(COMPILER is None, reason="there is no C compiler here to make a libcuda.so.1 with")

SOURCE = """
#include <unistd.h>
static int owner;
int inits;                                       /* how often cuInit was called */
int cuInit(unsigned flags) {
    inits++;
    if (owner && owner != getpid()) return 3;    /* as the real one: of no use after a fork */
    owner = getpid();
    return 0;
}
int cuCtxGetCurrent(void **context) { *context = 0; return owner == getpid() ? 0 : 3; }
"""


def build(folder: Path) -> Path:
    """Compile it and return its path: whoever loads it and calls `cuInit` has initialised CUDA."""
    source, library = folder / "fakecuda.c", folder / "libcuda.so.1"
    source.write_text(SOURCE)
    command = [str(COMPILER), "-shared", "-fPIC", "-o", str(library), str(source), "-Wl,-soname,libcuda.so.1"]
    subprocess.run(command, check=True)
    return library
