"""The machine of the stand-in: a folder, in which processes meet. Its GPUs, and what was noted in it.

Everything that another process can see is a file there: memory (m...), events (event-...), who has opened what
(open-...), GPUs that may not be accessed (deny-...), and what was noted (noted-...).
"""

from __future__ import annotations

import os
import threading
import uuid
from pathlib import Path

from nbmp.cuda import driver

GPUS = tuple(uuid.UUID(int=0xA0 + number).bytes for number in range(3))


class DriverError(RuntimeError):
    """What CuPy's CUDARuntimeError is with a driver."""


class Machine:
    """Devices, and what must not happen."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._lock = threading.RLock()
        visible = os.environ.get("CUDA_VISIBLE_DEVICES")
        numbers = range(len(GPUS)) if visible is None else map(int, visible.split(","))
        self.gpus = [GPUS[number] for number in numbers]

    # --- the driver module's functions ---

    def check(self) -> None:
        driver.check_fork()

    def device_count(self) -> int:
        return len(self.gpus)

    def current_device(self) -> int:
        return 0

    def device_uuid(self, device: int) -> bytes:
        return self.gpus[device]

    # --- for the tests ---

    def refuse(self, rule: str, error: str) -> DriverError:
        """Write down that this rule was broken; return the error to be raised."""
        self.violation(rule)
        return DriverError(error)

    def violation(self, text: str) -> None:
        self.note("violations", f"{os.getpid()}: {text}")

    def note(self, what: str, text: str | None = None) -> None:
        with (self.folder / f"noted-{what}").open("a") as file:
            file.write(f"{text or os.getpid()}\n")

    def noted(self, what: str) -> list[str]:
        """Return what was noted of this, by all processes of the machine."""
        path = self.folder / f"noted-{what}"
        return path.read_text().splitlines() if path.exists() else []

    def deny(self, gpu: bytes) -> None:
        """Have nobody open memory of this device."""
        (self.folder / f"deny-{gpu.hex()}").touch()

    def is_denied(self, gpu: bytes) -> bool:
        return (self.folder / f"deny-{gpu.hex()}").exists()


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in ("Z", "X")
    except OSError:
        return False
