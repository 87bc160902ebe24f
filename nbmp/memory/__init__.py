"""Shared memory: segments, and the arrays that lie in them."""
