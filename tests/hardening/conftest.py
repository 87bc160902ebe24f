"""The kernel of the notebook's tests: one for all cells of a table."""

from tests.notebook.conftest import kernel, shared_kernel

__all__ = ["kernel", "shared_kernel"]
