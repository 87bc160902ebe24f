"""What memory of GPUs this process lends and has received: a snapshot, as plain data. And the cleaning up."""

import os
from dataclasses import dataclass
from typing import NamedTuple

from nbmp.cuda import driver, received
from nbmp.cuda.devices import shown
from nbmp.cuda.loans import loans
from nbmp.memory import janitor
from nbmp.memory.mappings import Key
from nbmp.memory.segment import human


class LentBlock(NamedTuple):
    """A block of this process that others may use."""

    size: int
    device: str
    """UUID, as `nvidia-smi -L` writes it."""
    held_by: tuple[int, ...]
    """The pids of those that have it; empty when it is on its way in a message."""


class ReceivedBlock(NamedTuple):
    """A block of another process that is used here."""

    size: int
    device: str
    producer: int
    """The pid of the process whose memory it is."""


@dataclass(frozen=True)
class MemoryUsage:
    """Memory of GPUs that is shared, as this process knows it, at one moment."""

    lent: tuple[LentBlock, ...]
    received: tuple[ReceivedBlock, ...]

    @property
    def lent_bytes(self) -> int:
        """Return the bytes that this process keeps for others (and perhaps for itself)."""
        return sum(block.size for block in self.lent)

    @property
    def received_bytes(self) -> int:
        """Return the bytes that others keep for this process."""
        return sum(block.size for block in self.received)

    def __str__(self) -> str:
        lines = [f"GPU memory: {human(self.lent_bytes)} lent, {human(self.received_bytes)} received"]
        for block in self.lent:
            who = ", ".join(map(str, block.held_by)) or "a message under way"
            lines.append(f"  lent      {human(block.size):>9}  {block.device}  to {who}")
        for taken in self.received:
            lines.append(f"  received  {human(taken.size):>9}  {taken.device}  from {taken.producer}")
        return "\n".join(lines)


def memory_usage() -> MemoryUsage:
    """Return what this process lends to others at this moment, and what it has received: `print` it for a table.

    Blocks are pieces of CuPy's memory pool: an array and its views are one. Those that nobody uses any more are let go
    first. Who holds a block is read from `/proc`: processes of other users are not seen.

    Raises
    ------
    ModuleNotFoundError, DeviceError
        Without CuPy or without a driver; says what to install.
    """
    driver.check()
    loans.sweep()
    lent = tuple(
        LentBlock(loan.thing.size, shown(loan.told.about[2]), holders(loan.segment.key))
        for loan in loans
        if hasattr(loan.thing, "size")  # not an event
    )
    taken = tuple(
        ReceivedBlock(use.about[-1], shown(use.opened.allocation.device), use.opened.allocation.producer)
        for use in received.blocks()
    )
    return MemoryUsage(lent, taken)


def ipc_collect() -> None:
    """Give back now what is not used any more: memory that others have dropped, and others' that was dropped here.

    Both happen by themselves, within a second or two; call it before an allocation that needs the room. Waits until
    the GPU is done with what was dropped here. Memory that is let go returns to CuPy's pool:
    `cupy.get_default_memory_pool().free_all_blocks()` gives it to others.

    Raises
    ------
    ModuleNotFoundError, DeviceError
        Without CuPy or without a driver; says what to install. While the current stream is captured into a graph.
    """
    driver.check()
    device = driver.current_device()
    driver.refuse_capture(driver.current_stream(device), device)
    received.settle()
    janitor.trim()


def holders(key: Key) -> tuple[int, ...]:
    """Return the pids of the other processes that have this lease file open, as far as this user may look."""
    own = str(os.getpid())
    pids = [name for name in os.listdir("/proc") if name.isdigit() and name != own]
    return tuple(sorted(int(pid) for pid in pids if _has(pid, key)))


def _has(pid: str, key: Key) -> bool:
    try:
        numbers = os.listdir(f"/proc/{pid}/fd")
    except OSError:
        return False
    for number in numbers:
        try:
            status = os.stat(f"/proc/{pid}/fd/{number}")
        except OSError:
            continue
        if (status.st_dev, status.st_ino) == key:
            return True
    return False
