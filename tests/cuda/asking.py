"""A rank that answers to what it is sent."""

from __future__ import annotations

from typing import Any

import nbmp


class Rank:
    """Runs `function(0, requests, answers)`."""

    def __init__(self, function: Any, method: str = "forkserver", env: dict[str, str] | None = None) -> None:
        self.requests, self.answers = nbmp.Queue(), nbmp.Queue()
        self.context = nbmp.start_processes(
            function, (self.requests, self.answers), 1, join=False, start_method=method, env=env
        )

    @property
    def pid(self) -> int:
        assert self.context is not None
        pid = self.context.pids()[0]
        assert pid is not None
        return pid

    def ask(self, item: Any) -> Any:
        """Send something and return the answer."""
        self.requests.put(item)
        return self.answers.get(timeout=60)

    def end(self, last: Any = None) -> None:
        """Send the last message and wait for its end."""
        self.requests.put(last)
        assert self.context is not None
        assert self.context.join(60)
