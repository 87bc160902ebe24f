"""Worker processes and the tasks they are given: what `nbmp.pool` and `nbmp.executor` have in common."""
