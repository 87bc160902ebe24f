"""A stand-in for the CUDA calls of `nbmp.cuda.driver`, for machines without a GPU.

Device memory is a file that each process maps, so that two processes really see each other's writes. Devices, handles,
events and what was freed are files of one folder (`FOLDER` in the environment), which is the machine. Streams are
threads that do what they are told in order: work is late, as on a GPU, and events are what orders it.

    folder <- streams <- events <- memory      each file has a class with functions of the driver module, this one
                                                puts them in its place

It is strict where drivers are vague. What must not happen is written down (`violations`) as well as refused:
    a handle opened in its own process, opened twice, opened on another device, or after its memory was freed or its
    process ended
    memory freed while another process has it open, closed while work runs, closed and used (that is a SIGSEGV)
    a handle of an address inside an allocation, of managed memory, of memory of a stream-ordered pool
    anything asked of a stream that is captured into a graph, or that would end the capture of another thread
    an event opened or waited for after it was destroyed, destroyed before it is done, used on another device
A driver counts how often a handle was opened, and lets those bytes of it that mean nothing differ from time to time:
here they always differ, and the second opening is refused, since it must not be needed.
"""

from __future__ import annotations

import os
from pathlib import Path

from nbmp.cuda import devices, driver
from tests.cuda.standin.folder import GPUS as GPUS
from tests.cuda.standin.folder import DriverError as DriverError
from tests.cuda.standin.memory import Memory
from tests.cuda.standin.memory import seen as seen
from tests.cuda.standin.streams import BLOCKING as BLOCKING
from tests.cuda.standin.streams import SIDE as SIDE

FOLDER = "NBMP_TESTS_CUDA"
"""The environment variable that names the folder of the machine: ranks find it there."""


class StandIn(Memory):
    """This process' side of the machine."""


REPLACED = [name for name in dir(StandIn) if not name.startswith("_") and callable(getattr(driver, name, None))]

machine: StandIn | None = None


def install(folder: Path) -> StandIn:
    """Put the stand-in in the place of the driver's functions of this process."""
    global machine
    machine = StandIn(folder)
    for name in REPLACED:
        setattr(driver, name, getattr(machine, name))
    devices.uuid_of.cache_clear()
    devices.device_of.cache_clear()
    return machine


if FOLDER in os.environ:  # in a rank: before anything is unpickled that needs it
    install(Path(os.environ[FOLDER]))
