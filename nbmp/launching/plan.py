"""What a start method needs to bring one rank to life."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from nbmp.channels import Channel
from nbmp.launching.messages import Setup
from nbmp.launching.private import Descriptor
from nbmp.launching.process import RankProcess
from nbmp.launching.where.stackfile import StackFile
from nbmp.memory.segment import Segment


@dataclass(frozen=True)
class RankEnds:
    """The rank's ends of what connects it to the launching process; closed there as soon as the rank has them."""

    channel: Channel
    lifeline: Descriptor
    stdout: Descriptor
    stderr: Descriptor

    def close(self) -> None:
        for end in (self.channel, self.lifeline, self.stdout, self.stderr):
            end.close()


@dataclass(frozen=True)
class Plan:
    """One rank to be started."""

    process: RankProcess
    setup: Setup
    ends: RankEnds
    board: Segment
    crash: StackFile
    task: Callable[..., Any] | None
    """Under fork, what the rank calls as `task(rank)`. Otherwise it waits for a TASK message."""
    threads: int | None
    """For BLAS and OpenMP libraries that the rank inherits loaded; None: as they are."""
